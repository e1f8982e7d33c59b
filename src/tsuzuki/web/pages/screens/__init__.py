"""One module per screen of the host. Each has a `screen` with its routes; what is in this folder is served."""

from importlib import import_module
from pkgutil import iter_modules

from fastapi import FastAPI

from tsuzuki.web.pages.extension import extensions
from tsuzuki.web.pages.route import PageRoute, Screen


def screens() -> list[Screen]:
    """Every screen: the host's by the names of their modules, then those of collectors."""
    ours = [
        f"{__name__}.{name}" for name in sorted(module.name for module in iter_modules(__path__))
    ]
    theirs = [module for pages in extensions() for module in pages.screens]
    return [import_module(module).screen for module in (*ours, *theirs)]


def include_pages(app: FastAPI) -> None:
    """Put every screen into the application."""
    routes = [route for screen in screens() for route in screen.routes]
    app.routes.extend(routes)
    app.state.page_paths = frozenset(
        route.path
        for route in routes
        if isinstance(route, PageRoute) and "GET" in (route.methods or ())
    )
