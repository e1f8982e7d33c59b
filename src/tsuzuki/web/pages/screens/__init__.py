"""One module per screen. Each has a `screen` with its routes; what is in this folder is served."""

from importlib import import_module
from pkgutil import iter_modules

from fastapi import APIRouter


def routers() -> list[APIRouter]:
    """Of every screen, by the names of their modules."""
    names = sorted(module.name for module in iter_modules(__path__))
    return [import_module(f"{__name__}.{name}").screen.router for name in names]
