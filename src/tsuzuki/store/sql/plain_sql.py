"""Statements for `exec_driver_sql`: written once with `:names`, handed to the driver as they are.

For the few that a collection repeats with every page. Half of what a short statement costs is the way
through SQLAlchemy; a plain one spares it, and gives up the types of columns: its values must be what
the driver takes and gives.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

_NAME = re.compile(r"(?<![:\w]):(\w+)")


def plain(sql: str) -> Mapping[str, str]:
    """The statement for each dialect."""
    return MappingProxyType({"sqlite": sql, "postgresql": _NAME.sub(r"%(\1)s", sql)})
