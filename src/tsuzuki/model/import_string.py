"""Import strings: `package.module:attribute`."""

from importlib import import_module
from typing import Any


def load(target: str) -> Any:
    """Import the module and return its attribute."""
    module, _, attribute = target.partition(":")
    found: Any = import_module(module)
    for name in attribute.split("."):
        found = getattr(found, name)
    return found
