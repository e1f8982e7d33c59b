"""Tests of `tsuzuki.config.yaml`."""
