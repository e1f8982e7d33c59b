"""The table of routes finds what the router would find, and leaves all else to it."""

import re

import pytest
from starlette.routing import BaseRoute, Match, NoMatchFound, Route

from support.web_client import Served
from tsuzuki.web.route_table import RouteTable

METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")


def first_match(routes: list[BaseRoute], scope: dict[str, object]) -> object:
    """What a router does: one route after the other."""
    for route in routes:
        match, child_scope = route.matches(scope)
        if match is Match.FULL:
            return child_scope["route"], child_scope["path_params"]
    return None


def scope_of(method: str, path: str) -> dict[str, object]:
    return {"type": "http", "method": method, "path": path, "root_path": ""}


@pytest.fixture
def routes(served: Served) -> tuple[RouteTable, list[BaseRoute]]:
    table, *others = served.server.app.routes
    assert isinstance(table, RouteTable)
    return table, others


def test_every_path_belongs_to_the_same_route_as_without_the_table(
    routes: tuple[RouteTable, list[BaseRoute]],
) -> None:
    table, others = routes
    paths = {re.sub(r"\{[^}]+\}", "7", route.path) for route in others if isinstance(route, Route)}
    odd = {"/", "", "/api/v1", "/api/v1/jobs/", "/api/v1/jobs/a/b/c", "/runs/7.json", "/runs\n"}
    for path in paths | odd:
        for method in METHODS:
            scope = scope_of(method, path)
            assert first_match([table], scope) == first_match(others, scope), (method, path)


def test_what_is_no_request_of_a_known_route_is_left_to_the_router(
    routes: tuple[RouteTable, list[BaseRoute]],
) -> None:
    table, _ = routes
    assert table.matches(scope_of("GET", "/nothing/here")) == (Match.NONE, {})
    assert table.matches(scope_of("BREW", "/api/v1/jobs")) == (Match.NONE, {})
    assert table.matches({"type": "websocket", "path": "/api/v1/jobs"}) == (Match.NONE, {})
    with pytest.raises(NoMatchFound):
        table.url_path_for("list_jobs")
