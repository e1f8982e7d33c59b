"""For rules that only one of the two databases has: the test runs there, and nowhere is skipped."""

import pytest

only_on_postgresql = pytest.mark.parametrize("dialect", ["postgresql"])
only_on_sqlite = pytest.mark.parametrize("dialect", ["sqlite"])
