"""Import strings: `package.module:attribute`."""

import importlib.util
import sys
from importlib import import_module
from typing import Any


def load(target: str) -> Any:
    """Import the module and return its attribute."""
    module, _, attribute = target.partition(":")
    found: Any = import_module(module)
    for name in attribute.split("."):
        found = getattr(found, name)
    return found


def is_importable(module: str) -> bool:
    """Whether the module is found, without importing it; packages that it is in are imported."""
    try:
        return importlib.util.find_spec(module) is not None
    except ValueError:  # it is loaded, by a program that gave it no spec
        return module in sys.modules
    except Exception:  # noqa: BLE001 -- whatever a finder of a third party raises
        return False
