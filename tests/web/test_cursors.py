"""Lists page by page: every row once, and no cursor but those of the list itself."""

import base64
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import pytest

from support.web_client import Client, Served, served_application
from tsuzuki.services.runs import Request
from tsuzuki.web.paging import COUNT_MAX, count_of

RUNS = 60


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder: Path = tmp_path_factory.mktemp("workspace")
    with served_application(folder) as served:
        application = served.application
        for name in ("one", "two", "three"):
            application.jobs.define(name, {"command": ["true"]})
        application.runs.submit_many(
            [Request(job=("one", "two", "three")[n % 3]) for n in range(RUNS)]
        )
        yield served


def pages(client: Client, path: str) -> Iterator[list[dict[str, object]]]:
    cursor = ""
    while True:
        answer = client.get(f"{path}{cursor}")
        assert answer.status == 200, answer.body
        yield answer.json["items"]
        if answer.json["next_cursor"] is None:
            return
        cursor = f"&cursor={quote(answer.json['next_cursor'])}"


def test_every_row_comes_once_while_others_are_added(client: Client, served: Served) -> None:
    before = {run["id"] for page in pages(client, "runs?limit=200") for run in page}
    seen: list[object] = []
    with ThreadPoolExecutor(1) as pool:
        for page in pages(client, "runs?limit=7"):
            seen += [run["id"] for run in page]
            pool.submit(served.application.runs.submit, Request(job="one")).result()
    assert len(seen) == len(set(seen))
    assert set(seen) == before


def test_a_job_that_is_added_or_removed_moves_no_other(client: Client, served: Served) -> None:
    first = client.get("jobs?limit=2").json
    assert [job["name"] for job in first["items"]] == ["one", "three"]
    served.application.jobs.define("a-new-one", {"command": ["true"]})
    rest = client.get(f"jobs?limit=2&cursor={first['next_cursor']}").json
    assert [job["name"] for job in rest["items"]] == ["two"]
    served.application.jobs.discard("a-new-one", version=None)


def test_filters_are_echoed_as_they_were_understood(client: Client) -> None:
    query = "runs?job=one&exclude_state=FAILED&created_from=2026-01-01T09:00:00%2B09:00&limit=1"
    assert client.get(query).json["filters"] == {
        "job": ["one"],
        "exclude_state": ["FAILED"],
        "created_from": "2026-01-01T00:00:00.000000Z",
    }


def test_a_count_comes_on_request(client: Client) -> None:
    assert client.get("runs?limit=1").json["count"] is None
    count = client.get("runs?limit=1&job=two&count=true").json["count"]
    assert count == {"value": RUNS // 3, "exact": True}
    assert client.get("jobs?count=true").json["count"]["value"] == 3
    assert client.get("audit?count=true&object_type=job").json["count"]["exact"]
    assert client.get("events?count=true").json["count"] == {"value": 0, "exact": True}


def test_a_long_count_stops_and_says_so() -> None:
    assert count_of(COUNT_MAX).exact
    stopped = count_of(COUNT_MAX + 1)
    assert (stopped.value, stopped.exact) == (COUNT_MAX, False)


def cursor_of(client: Client, path: str) -> str:
    return str(client.get(path).json["next_cursor"])


def test_a_cursor_of_another_list_is_refused(client: Client) -> None:
    runs = cursor_of(client, "runs?limit=1")
    filtered = cursor_of(client, "runs?limit=1&job=one")
    for path in (
        f"runs?job=one&cursor={runs}",
        f"runs?cursor={filtered}",
        f"runs?job=two&cursor={filtered}",
        f"jobs?cursor={runs}",
        f"audit?cursor={runs}",
    ):
        answer = client.get(path)
        assert (answer.status, answer.code) == (400, "cursor_invalid"), path
    assert client.get(f"runs?limit=9&cursor={runs}").status == 200


def forged(cursor: str) -> Iterator[str]:
    raw = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4))
    for changed in (
        raw[:-1] + bytes([raw[-1] ^ 1]),
        bytes([raw[0] ^ 1]) + raw[1:],
        raw[:16],
        raw[:15],
        raw + b"0",
        b"\0" * 16 + raw[16:],
    ):
        yield base64.urlsafe_b64encode(changed).decode().rstrip("=")
    yield from ("x", "%", "é", "A" * 999)


def test_a_forged_cursor_is_refused(client: Client) -> None:
    for cursor in forged(cursor_of(client, "runs?limit=1")):
        answer = client.get(f"runs?cursor={quote(cursor)}")
        assert (answer.status, answer.code) == (400, "cursor_invalid"), cursor


def test_another_process_on_the_database_takes_the_cursor(client: Client, served: Served) -> None:
    cursor = cursor_of(client, "runs?limit=1")
    url = served.application.configuration.database_url
    with served_application(Path("/"), database_url=url) as other:
        assert other.client.get(f"runs?cursor={cursor}").status == 200
