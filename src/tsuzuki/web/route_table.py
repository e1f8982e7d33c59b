"""Finds the route of a request in one step, however many routes there are.

A router compares the path with one route after the other. Here the patterns of all routes of a method are one regular
expression, in their order, so the same route is found. What is not found, as an unknown path or another method of a
known one, is left to the router.
"""

import re
from collections.abc import Sequence
from typing import NamedTuple

from starlette.routing import BaseRoute, Match, NoMatchFound, Route
from starlette.types import Receive, Scope, Send

_NAMED_GROUP = re.compile(r"\(\?P<\w+>")


class _Table(NamedTuple):
    pattern: re.Pattern[str]
    routes: dict[str, Route]
    """By the name of their group in the pattern."""


class RouteTable(BaseRoute):
    """Stands before these routes in the list of a router."""

    def __init__(self, routes: Sequence[BaseRoute]) -> None:
        self._routes = [route for route in routes if isinstance(route, Route)]
        methods = {method for route in self._routes for method in route.methods or ()}
        self._tables = {method: self._table(method) for method in methods}

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        route = self._find(scope["method"], scope["path"]) if scope["type"] == "http" else None
        if route is None:
            return Match.NONE, {}
        match, child_scope = route.matches(scope)
        return (match, child_scope) if match is Match.FULL else (Match.NONE, {})

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        route: Route = scope["route"]  # which its `matches` put there
        await route.handle(scope, receive, send)

    def url_path_for(self, name: str, /, **path_params: object) -> None:  # type: ignore[override]  # it has no path
        raise NoMatchFound(name, path_params)

    def _find(self, method: str, path: str) -> Route | None:
        """The first route of the method that the path belongs to."""
        table = self._tables.get(method)
        found = table.pattern.match(path) if table else None
        return table.routes[found.lastgroup or ""] if table and found else None

    def _table(self, method: str) -> _Table:
        routes = [route for route in self._routes if method in (route.methods or ())]
        named = {f"route_{number}": route for number, route in enumerate(routes)}
        patterns = (
            f"(?P<{name}>{_NAMED_GROUP.sub('(?:', route.path_regex.pattern)})"
            for name, route in named.items()
        )
        return _Table(re.compile("|".join(patterns)), named)
