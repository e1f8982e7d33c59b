"""Tests of the configuration room; each file is named for the module it tests."""
