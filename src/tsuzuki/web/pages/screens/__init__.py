"""One module per screen of the host. Each has a `screen` with its routes; what is in this folder is served."""

from importlib import import_module
from pkgutil import iter_modules

from fastapi import APIRouter, FastAPI

from tsuzuki.web.pages.extension import extensions
from tsuzuki.web.pages.route import PageRoute


def routers() -> list[APIRouter]:
    """The routers of every screen: the host's by the names of their modules, then those of collectors."""
    ours = [
        f"{__name__}.{name}" for name in sorted(module.name for module in iter_modules(__path__))
    ]
    theirs = [module for pages in extensions() for module in pages.screens]
    return [import_module(module).screen.router for module in (*ours, *theirs)]


def include_pages(app: FastAPI) -> None:
    """Put every screen into the application."""
    found = routers()
    paths = {
        route.path
        for router in found
        for route in router.routes
        if isinstance(route, PageRoute) and "GET" in (route.methods or ())
    }
    for router in found:
        app.routes.extend(router.routes)
    app.state.page_paths = frozenset(paths)
