"""Markers for tests of one database only; no skip is reported for the other."""

import pytest

only_on_postgresql = pytest.mark.parametrize("dialect", ["postgresql"])
only_on_sqlite = pytest.mark.parametrize("dialect", ["sqlite"])
