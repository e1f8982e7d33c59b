"""HEAD, OPTIONS, and methods that a path has not."""

import pytest

from support.web_client import Client, Served
from tsuzuki.web.documents import openapi_of


@pytest.mark.parametrize("path", ["/livez", "/docs", "/api/v1/jobs", "/api/v1/jobs/none"])
def test_head_is_get_without_the_body(client: Client, path: str) -> None:
    got, asked = client.get(path), client.request("HEAD", path)
    assert (asked.status, asked.body) == (got.status, b"")
    without_date = {name: value for name, value in asked.headers.items() if name != "date"}
    assert without_date.items() <= got.headers.items()
    assert asked.headers["content-length"] == str(len(got.body))


def test_head_needs_the_right_that_get_needs(client: Client) -> None:
    assert client.as_(None).request("HEAD", "jobs").status == 401
    assert client.as_("narrow").request("HEAD", "jobs").status == 403


def test_head_of_a_stream_ends_with_its_headers(client: Client) -> None:
    run_id = client.post("jobs/hello/runs").json["id"]
    asked = client.request("HEAD", f"runs/{run_id}/logs/stream")
    assert (asked.status, asked.body) == (200, b"")
    assert asked.headers["content-type"].startswith("text/event-stream")


def test_the_methods_of_each_path_are_told(served: Served, client: Client) -> None:
    paths = openapi_of(served.server.app)["paths"]
    for path in paths:
        sought = path.format_map(_Ones())
        methods = paths[path]  # not those of jobs/{name} too, which jobs/apply is as well
        expected = {method.upper() for method in methods} | {"OPTIONS"}
        expected |= {"HEAD"} if "get" in methods else set()
        asked = client.as_(None).request("OPTIONS", sought)
        assert (asked.status, asked.body) == (204, b""), path
        assert set(asked.headers["allow"].split(", ")) == expected, path
        refused = client.request("PROPFIND", sought)
        assert (refused.status, refused.code) == (405, "method_not_allowed"), path
        assert refused.headers["allow"] == asked.headers["allow"]
    assert client.request("OPTIONS", "/nowhere").status == 404


class _Ones(dict[str, str]):
    """Some value for each part of a path."""

    def __missing__(self, key: str) -> str:
        return "1"
