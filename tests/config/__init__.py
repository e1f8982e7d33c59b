"""Tests of the package `config`; each file is named for the module it tests."""
