"""Marks for rules of one database only: the test runs on it, and no skip is reported for the other."""

import pytest

only_on_postgresql = pytest.mark.parametrize("dialect", ["postgresql"])
only_on_sqlite = pytest.mark.parametrize("dialect", ["sqlite"])
