"""One module per screen of the host. Each has a `screen` with its routes; what is in this folder is served."""

from importlib import import_module
from pkgutil import iter_modules

from fastapi import APIRouter

from tsuzuki.web.pages.extension import extensions


def routers() -> list[APIRouter]:
    """The routers of every screen: the host's by the names of their modules, then those of collectors."""
    ours = [
        f"{__name__}.{name}" for name in sorted(module.name for module in iter_modules(__path__))
    ]
    theirs = [module for pages in extensions() for module in pages.screens]
    return [import_module(module).screen.router for module in (*ours, *theirs)]
