"""Puts the pages into the application: every screen."""

from collections.abc import Iterator

from fastapi import FastAPI

from tsuzuki.web.pages import screens
from tsuzuki.web.pages.route import PageRoute

STREAM = "/stream"
"""Of the API: what changes, as events."""


def include_pages(app: FastAPI) -> None:
    routers = screens.routers()
    paths = {
        route.path
        for router in routers
        for route in router.routes
        if isinstance(route, PageRoute) and "GET" in (route.methods or ())
    }
    for router in routers:
        app.include_router(router)
    app.state.page_paths = frozenset(paths)
    app.state.has_stream = STREAM in _paths(app)


def _paths(app: FastAPI) -> Iterator[str]:
    """Of all routes so far, without the prefix of the API."""
    for included in app.routes:
        router = getattr(included, "original_router", None)
        for route in router.routes if router else [included]:
            yield getattr(route, "path", "")
