"""Which role may call which route: generated from the routes, each with a declared right."""

from collections.abc import Iterator

import pytest

from support.mcp_http import call_text, result_of, send
from support.web_client import RIGHTS, Client, FixedAuthenticator, Served
from tsuzuki.mcp.presets import presets
from tsuzuki.web.app import NOUNS
from tsuzuki.web.documents import openapi_of
from tsuzuki.web.route import PREFIX, ApiRoute, ApiRouter

CALLERS = [None, "expired", *FixedAuthenticator.PRINCIPALS]
PATH_VALUES = {
    "run_id": "999999",
    "name": "no-such",
    "worker_id": "no-such",
    "key": "no-such",
    "bulk_id": "999999",
    "group_id": "no-such",
    "token_id": "no-such",
    "session_id": "999999",
    "item_id": "999999",
    "collection_id": "no-such",
    "build_id": "no-such",
    "feed": "no-such",
    "mail_id": "999999",
}


def operations(served: Served) -> Iterator[tuple[str, str, str]]:
    """Each route of the API: its method, its path with values in it, and its right."""
    for path, methods in openapi_of(served.server.app)["paths"].items():
        for method, operation in methods.items():
            yield method.upper(), path.format(**PATH_VALUES), operation["x-right"]


def test_every_route_answers_each_caller_as_its_right_says(served: Served, client: Client) -> None:
    seen = set()
    for method, path, right in operations(served):
        for caller in CALLERS:
            answer = client.as_(caller).request(method, path)
            principal = FixedAuthenticator.PRINCIPALS.get(caller or "")
            if right == "public":
                assert answer.status not in (401, 403), (method, path, caller)
            elif principal is None:
                assert answer.status == 401, (method, path, caller)
            elif right != "authenticated" and not principal.may(RIGHTS[right]):
                assert (answer.status, answer.code) == (403, "right_missing"), (
                    method,
                    path,
                    caller,
                )
            else:
                assert answer.status not in (401, 403, 500), (method, path, caller, answer.body)
            seen.add((right, answer.status))
    assert {status for _, status in seen} >= {200, 401, 403, 404}


def test_every_route_needs_its_scope_and_no_other(served: Served, client: Client) -> None:
    for method, path, right in operations(served):
        if right in ("public", "authenticated"):
            continue
        without = client.as_(f"without-{right}").request(method, path)
        assert (without.status, without.code) == (403, "right_missing"), (method, path)
        only = client.as_(f"only-{right}").request(method, path)
        assert only.status not in (401, 403, 500), (method, path, only.body)


def test_no_route_of_a_noun_is_public() -> None:
    for noun in NOUNS:
        for route in noun.router.routes:
            assert isinstance(route, ApiRoute)
            assert not route.is_public, route.path


def test_only_these_routes_need_no_right_of_their_own(served: Served) -> None:
    """What they tell depends on who asks; each topic of a stream has its right. A token may revoke itself."""
    anyone = {path for _, path, right in operations(served) if right == "authenticated"}
    assert anyone == {f"{PREFIX}/me", f"{PREFIX}/stream", f"{PREFIX}/tokens/no-such", "/mcp"}


@pytest.mark.parametrize("caller", FixedAuthenticator.PRINCIPALS)
def test_every_tool_answers_each_caller_as_its_right_says(client: Client, caller: str) -> None:
    principal = FixedAuthenticator.PRINCIPALS[caller]
    listed = result_of(send(client.as_(caller), "tools/list"))["tools"]
    tools = presets()["all"].tools
    assert [tool["name"] for tool in listed] == [
        tool.name for tool in tools if tool.is_listed and principal.may(tool.right)
    ]
    for tool in tools:
        answer = call_text(client.as_(caller), tool.name)
        is_refused = answer.startswith(f"!right_missing: permission {tool.right} is required")
        assert is_refused == (not principal.may(tool.right)), (tool.name, answer)


def test_a_route_without_a_declared_right_cannot_be_made() -> None:
    with pytest.raises(TypeError, match="right"):
        ApiRouter().get("/open")(lambda: None)


def test_every_route_of_the_application_is_one_of_the_matrix(served: Served) -> None:
    """A route that the document does not list would not be tried above."""
    paths = set(openapi_of(served.server.app)["paths"])
    for route in served.server.app.routes:
        assert isinstance(route, ApiRoute), route
        assert route.path in paths or not route.include_in_schema, route.path  # pages: tests/pages


def test_a_scope_that_is_missing_is_told(client: Client) -> None:
    answer = client.as_("narrow").get("jobs")
    assert answer.json["detail"] == "permission jobs:read is required"
    assert "limited to other scopes" in answer.json["hint"]
    assert "The role viewer" in client.as_("viewer").post("jobs/hello/runs").json["hint"]


def test_who_may_not_come_in_learns_nothing_about_the_body(client: Client) -> None:
    assert client.as_(None).request("POST", "events", raw=b"{").status == 401
    assert client.as_("viewer").request("POST", "events", raw=b"{").status == 403
