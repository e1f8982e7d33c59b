"""Tests of `tsuzuki.config.environment`."""
