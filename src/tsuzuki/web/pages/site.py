"""Puts the pages into the application: every screen."""

from fastapi import FastAPI

from tsuzuki.web.pages import screens
from tsuzuki.web.pages.route import PageRoute


def include_pages(app: FastAPI) -> None:
    routers = screens.routers()
    paths = {
        route.path
        for router in routers
        for route in router.routes
        if isinstance(route, PageRoute) and "GET" in (route.methods or ())
    }
    for router in routers:
        app.routes.extend(router.routes)
    app.state.page_paths = frozenset(paths)
