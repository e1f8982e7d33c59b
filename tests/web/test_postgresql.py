"""The same API on PostgreSQL, where text, numbers and times are refused by the database itself."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.databases import PostgresServer
from support.web_client import Client, Served, served_application
from tsuzuki.services.runs import RunFilter


@pytest.fixture(scope="module")
def served(postgres: PostgresServer, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    url = postgres.create(())
    folder = tmp_path_factory.mktemp("workspace")
    with served_application(folder, database_url=url) as served:
        served.application.jobs.define("hello", {"command": ["true"]})
        yield served
    postgres.drop(url)


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("runs?worker=%00", 422),
        ("runs?concurrency_key=%EF%BF%BF%F0%9F%92%A5", 200),
        ("runs?event_id=9223372036854775807", 200),
        ("runs?event_id=9223372036854775808", 422),
        ("runs?created_from=0001-01-01T00:00:00%2B23:59", 422),
        ("runs?created_until=9999-12-31T23:59:59-23:59", 422),
        ("runs?created_from=0001-01-01T00:00:00Z&count=true", 200),
        ("runs?exclude_reason=late&exclude_worker=w&exclude_job=x&exclude_trigger=time", 200),
        ("runs/9223372036854775807", 404),
        ("runs/9223372036854775807/logs?after=2147483647", 404),
        ("audit?object_id=%F0%9F%92%A5&count=true", 200),
        ("events?event_type=%C3%A9", 200),
        ("failures?since=0001-01-01T00:00:00Z&acknowledged=true&count=true", 200),
        ("failures/%F0%9F%92%A5", 404),
        ("statistics/hours?hours=744", 200),
        ("bulk?count=true", 200),
        ("bulk/9223372036854775807/results", 404),
        ("books?search=%25%F0%9F%92%A5&count=true", 200),
        ("books?job=hello", 404),
        ("feeds/items?search=%5C&status=pending&reason=none&waiting=ready&count=true", 200),
        ("feeds/items/9223372036854775807/explain", 404),
        ("commits/collections?count=true", 200),
        ("commits/collections/%25", 404),
        ("commits/stats?by=day&by=branch&since=0001-01-01&until=9999-12-31", 200),
        ("commits/stats?project=99999999999999999999", 404),
        ("commits/export?format=jsonl&exclude_path=*.lock&generated=false", 200),
    ],
)
def test_odd_values_are_found_refused_or_not_there(client: Client, path: str, status: int) -> None:
    answer = client.get(path)
    assert answer.status == status, answer.body


def test_the_same_key_ten_times_at_once_is_one_run(client: Client, served: Served) -> None:
    runs = served.application.runs
    before = runs.count(RunFilter(), at_most=100)
    with ThreadPoolExecutor(10) as pool:
        answers = list(
            pool.map(lambda _: client.post("jobs/hello/runs", {}, Idempotency_Key="k"), range(10))
        )
    assert {answer.status for answer in answers} <= {201, 409}
    assert runs.count(RunFilter(), at_most=100) == before + 1
    again = client.post("jobs/hello/runs", {}, Idempotency_Key="k")
    assert again.headers["idempotency-replayed"] == "true"


def test_a_run_of_arguments_with_a_nul_is_kept(client: Client) -> None:
    arguments = {"nul": "a\x00b", "key": "é\U0001f4a5"}
    answer = client.post("jobs/hello/runs", {"arguments": arguments, "concurrency_key": "x\x00"})
    assert (answer.status, answer.json["arguments"]) == (201, arguments)


def test_every_row_comes_once(client: Client) -> None:
    for _ in range(5):
        client.post("jobs/hello/runs")
    seen: list[int] = []
    cursor = ""
    while True:
        page = client.get(f"runs?limit=2{cursor}").json
        seen += [run["id"] for run in page["items"]]
        if page["next_cursor"] is None:
            break
        cursor = f"&cursor={page['next_cursor']}"
    assert seen == sorted(set(seen), reverse=True)
    assert len(seen) == client.get("runs?count=true").json["count"]["value"]
