"""Tests of `tsuzuki.config.schema`."""
