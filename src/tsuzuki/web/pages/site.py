"""Puts the pages into the application: every screen, and the address that a person types first."""

from collections.abc import Iterator

from fastapi import FastAPI, Response
from starlette.responses import RedirectResponse

from tsuzuki.web.pages import screens
from tsuzuki.web.pages.route import PageRoute, Screen

FIRST_PAGE = "/runs"
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
    if "/" not in paths:
        routers.append(_first_page().router)
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


def _first_page() -> Screen:
    screen = Screen()

    @screen.public("/")
    async def first_page() -> Response:
        return RedirectResponse(FIRST_PAGE, status_code=303)

    return screen
