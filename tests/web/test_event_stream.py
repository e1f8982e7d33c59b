"""The stream of events: what it tells, to whom, and from where it is resumed."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import timedelta
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from sqlalchemy import Connection

from support.databases import PostgresServer, opened
from support.event_stream import EventReader, cancel_all, waiting_runs
from support.waiting import wait_until
from support.web_client import FixedAuthenticator, Served, served_application
from tsuzuki.collectors.feeds.tables import items
from tsuzuki.model.access import Right
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.run import RunRef
from tsuzuki.services.runs import Request
from tsuzuki.store import leadership, logs, pruning, workers
from tsuzuki.store.logs import LogLine
from tsuzuki.store.runs import changes, moves, progress
from tsuzuki.store.runs.progress import ProgressReport
from tsuzuki.store.schema.history_tables import pruned_history
from tsuzuki.web.stream.rendering import JsonRenderer

TOPICS = {
    **dict.fromkeys(
        ["runs", "job:hello", "run:1", "created", "progress", "logs:1"], Right.RUNS_READ
    ),
    "workers": Right.WORKERS_READ,
    "items": Right.COLLECTORS_READ,
}


@pytest.fixture(scope="module", params=["sqlite", "postgresql"])
def database_url(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    if request.param == "sqlite":
        yield f"sqlite:///{tmp_path_factory.mktemp('database') / 'db.sqlite'}"
        return
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.create(())
    yield url
    server.drop(url)


@pytest.fixture(scope="module")
def served(database_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("workspace")
    with served_application(folder, database_url=database_url) as served:
        served.application.jobs.define("hello", {"command": ["true"]})
        served.application.jobs.define("other", {"command": ["true"]})
        yield served


@pytest.fixture
def second(database_url: str, tmp_path: Path) -> Iterator[Served]:
    """Another server on the same database."""
    with served_application(tmp_path, database_url=database_url) as served:
        yield served


def test_each_topic_gets_its_moves_once(served: Served, database_url: str) -> None:
    first, second = waiting_runs(served.application, 2)
    (other,) = waiting_runs(served.application, 1, job="other")
    url = served.server.url
    with (
        EventReader(url, "runs") as everything,
        EventReader(url, f"runs,job:hello,run:{first}") as joined,
        EventReader(url, "job:other") as of_job,
        EventReader(url, f"run:{second}, job:other") as of_run,
    ):
        expected = cancel_all(database_url, [first, second, other])
        assert everything.moves(3) == expected
        assert joined.moves(3) == expected
        assert of_job.moves(1) == [(other, 2)]
        assert of_run.moves(2) == [(second, 2), (other, 2)]
        assert everything.answer.headers["X-Accel-Buffering"] == "no"
        assert everything.answer.headers["Cache-Control"] == "no-cache"


def test_a_move_says_what_its_history_says(served: Served, database_url: str) -> None:
    (run_id,) = waiting_runs(served.application, 1)
    with EventReader(served.server.url, f"run:{run_id}") as reader:
        cancel_all(database_url, [run_id])
        (change,) = next(reader.events("runs")).data["changes"]
    (line,) = served.client.get(f"runs/{run_id}/history").json
    assert change == {**line, "job_name": "hello"}


def test_a_stream_is_resumed_where_it_was_on_any_server(
    served: Served, second: Served, database_url: str
) -> None:
    run_ids = waiting_runs(served.application, 900)
    with EventReader(served.server.url, "runs") as reader:
        started = reader.last_id
        seen = cancel_all(database_url, run_ids[:1])
        assert reader.moves(1) == seen
    expected = cancel_all(database_url, run_ids[1:])
    # A page at a time: each connection reads one event, and the next one continues elsewhere, where others listen.
    others = [EventReader(server.server.url, "runs") for server in (served, second)]
    known, found = reader.last_id, []
    for number in range(20):
        url = (served, second)[number % 2].server.url
        with EventReader(url, "runs", last_id=known) as again:
            found += again.moves(1)
            known = again.last_id
        if len(found) >= len(expected):
            break
    assert found == expected
    for run_id in waiting_runs(served.application, 4):
        # The other server has not looked since: the reader is ahead of it.
        url, other_url = served.server.url, second.server.url
        with EventReader(url, "runs", last_id=known) as reader:
            cancel_all(database_url, [run_id])
            assert reader.moves(1) == [(run_id, 2)]
            known = reader.last_id
        (next_id,) = waiting_runs(served.application, 1)
        with EventReader(other_url, "runs", last_id=known) as reader:
            cancel_all(database_url, [next_id])
            event = reader.read()
            assert event is not None
            assert [change["run_id"] for change in event.data["changes"]] == [next_id]
            known = reader.last_id
    for other in others:
        other.close()
    with EventReader(second.server.url, "runs", after=started) as reader:
        assert reader.moves(908)[:900] == [*seen, *expected]


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_a_late_commit_is_told_once_and_resumed_exactly(
    served: Served, second: Served, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A transaction with an older time commits after a newer move was told."""
    monkeypatch.setattr(changes, "MARGIN", timedelta(0))
    late, newer = waiting_runs(served.application, 2)
    with (
        EventReader(served.server.url, "runs") as reader,
        opened(database_url) as other,
    ):
        with other.write() as connection:
            assert moves.cancel(connection, operator="me", runs=[RunRef(id=late, version=1)])
            cancel_all(database_url, [newer])
            assert reader.moves(1) == [(newer, 2)]
            between = reader.last_id
        assert reader.moves(1) == [(late, 2)]
        behind = reader.last_id
    (last,) = waiting_runs(served.application, 1)
    cancel_all(database_url, [last])
    for server in (served, second):
        with EventReader(server.server.url, "runs", last_id=between) as again:
            assert again.moves(2) == [(late, 2), (last, 2)]
        with EventReader(server.server.url, "runs", last_id=behind) as again:
            assert again.moves(1) == [(last, 2)]


def test_what_was_pruned_is_answered_with_reload(
    served: Served, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MARGIN", timedelta(0))  # no run is pruned so soon after its end
    (run_id,) = waiting_runs(served.application, 1)
    with EventReader(served.server.url, "runs") as reader:
        known = reader.last_id
    cancel_all(database_url, [run_id])
    with opened(database_url) as database, database.write() as connection:
        term = leadership.take(connection, holder="me", lease_seconds=60)
        assert term is not None
        pruning.mark(connection, term=term, run_ids=[run_id])
        assert pruning.delete_marked(connection, term=term, run_ids=[run_id]) == 1
        assert leadership.release(connection, term=term)
    with EventReader(served.server.url, "runs", last_id=known) as reader:
        event = reader.read()
        assert event is not None
        assert (event.name, event.data) == ("reload", {"topic": "runs"})
        (later,) = waiting_runs(served.application, 1)
        cancel_all(database_url, [later])
        assert reader.moves(1) == [(later, 2)]
    with opened(database_url) as database, database.write() as connection:
        connection.execute(pruned_history.delete())


FORGED = 'runs~1\nevent: forged\ndata: {"x": 1}\n\n'
"""It would end a line of the stream, and write an event of its own."""


@pytest.mark.parametrize(
    "known", ["nonsense", "runs~p.9:2:.1", "runs~s.1.2", "runs~", "\x7f~;;", FORGED]
)
def test_an_id_that_is_none_is_answered_with_reload(served: Served, known: str) -> None:
    with EventReader(served.server.url, "runs", after=known) as reader:
        event = reader.read()
        assert event is not None
        assert event.name == "reload"


@contextmanager
def opened_log(served: Served, run_id: int, *, after: int = 0) -> Iterator[HTTPResponse]:
    with closing(HTTPConnection(urlsplit(served.server.url).netloc, timeout=120)) as connection:
        path = f"/api/v1/runs/{run_id}/logs/stream?after={after}"
        connection.request("GET", path, headers={"Authorization": "Bearer viewer"})
        yield connection.getresponse()


def log_lines(served: Served, run_id: int, *, after: int) -> Iterator[bytes]:
    """The data of the events of one log, until it ends."""
    with opened_log(served, run_id, after=after) as answer:
        yield from (line for line in answer if line.startswith(b"data: "))


def test_lines_progress_and_workers_are_told(served: Served, database_url: str) -> None:
    application = served.application
    run_id = application.runs.submit(Request(job="hello")).run_id
    with opened(database_url) as database:
        with database.write() as connection:
            term = leadership.take(connection, holder="leader", lease_seconds=60)
            assert term is not None
            workers.register(
                connection,
                worker_id="w1",
                host="h",
                pid=1,
                capacity=3,
                tags=frozenset(),
                software_version="1",
            )
        topics = f"progress,workers,logs:{run_id}:0"
        with EventReader(served.server.url, topics) as reader:
            whole = {name: next(reader.events(name)).data for name in ("progress", "workers")}
            assert whole["progress"] == {"progress": [], "gone": [], "is_whole": True}
            assert [worker["id"] for worker in whole["workers"]["workers"]] == ["w1"]
            with database.write() as connection:
                order = moves.Assignment(run=RunRef(id=run_id, version=1), worker_id="w1")
                assert moves.assign(connection, term=term, assignments=[order])
                assigned = RunRef(id=run_id, version=2)
                started = moves.start(connection, worker_id="w1", runs=[assigned])[run_id].started
                lines = [
                    LogLine(seq=seq, at=database.clock.now(), stream="stdout", body=body)
                    for seq, body in enumerate(["one", "see https://u:secret@host/"], start=1)
                ]
                logs.append(connection, worker_id="w1", lines=[(started, line) for line in lines])
                report = ProgressReport(run=started, processed=3, total=7, number=1)
                progress.report_progress(connection, worker_id="w1", reports=[report])
            found = {
                event.name: event
                for event in (reader.read(), reader.read(), reader.read())
                if event
            }
            assert found["workers"].data["workers"][0]["held"] == 1
            (told,) = found["progress"].data["progress"]
            assert (told["run_id"], told["processed"], told["total"]) == (run_id, 3, 7)
            assert not found["progress"].data["is_whole"]
            bodies = [line["body"] for line in found["logs"].data["lines"]]
            assert bodies == ["one", "see https://u:***@host/"]
            known = reader.last_id
            log = log_lines(served, run_id, after=1)
            assert b'"see https://u:***@host/"' in next(log)
        with database.write() as connection:
            line = LogLine(seq=3, at=database.clock.now(), stream="stdout", body="three")
            logs.append(connection, worker_id="w1", lines=[(started, line)])
            end = moves.RunEnd(run=started, state=moves.RunState.SUCCEEDED)
            moves.finish(connection, worker_id="w1", ends=[end])
            leadership.release(connection, term=term)
    (third, end) = log
    assert b'"three"' in third
    assert end == b"data: {}\n"
    with EventReader(served.server.url, topics, last_id=known) as reader:
        (event,) = [
            e for e in (reader.read(), reader.read(), reader.read()) if e and e.name == "logs"
        ]
        assert [line["seq"] for line in event.data["lines"]] == [3]
        assert event.data["ended"]
        known = reader.last_id
    with EventReader(served.server.url, f"logs:{run_id}", last_id=known) as reader:
        hub = served.server.app.state.stream_hub
        assert hub.subscriptions
        (after,) = waiting_runs(application, 1)
        with EventReader(served.server.url, f"runs,logs:{run_id}", last_id=known) as both:
            cancel_all(database_url, [after])
            event = both.read()
            assert event is not None
            assert event.name == "runs"


def test_a_new_run_is_told_by_its_id(served: Served) -> None:
    (before,) = waiting_runs(served.application, 1)
    with EventReader(served.server.url, "created") as reader:
        assert next(reader.events("created")).data["created"] == [{"run_id": before}]
        (after,) = waiting_runs(served.application, 1)
        told = next(reader.events("created")).data
        assert told == {"created": [{"run_id": after}], "gone": [], "is_whole": False}
    with EventReader(served.server.url, "created,workers", last_id=reader.last_id) as reader:
        assert next(reader.events("workers")).data["is_whole"]
        (newest,) = waiting_runs(served.application, 1)
        assert next(reader.events("created")).data["created"] == [{"run_id": newest}]


def test_items_of_feeds_are_told_when_they_change(served: Served, database_url: str) -> None:
    def add(connection: Connection, count: int, status: int) -> None:
        now = served.application.statistics._database.clock.now()
        rows = [
            {
                "url": f"https://example.org/{status}/{uuid4()}",
                "title": "t",
                "published_at": now,
                "status": status,
                "retry_count": 0,
                "created_at": now,
                "last_checked_at": now,
            }
            for _ in range(count)
        ]
        connection.execute(items.insert(), rows)

    with opened(database_url) as database:
        with database.write() as connection:
            add(connection, 1, 0)
        with EventReader(served.server.url, "items") as reader:
            (first,) = next(reader.events("items")).data["items"]
            assert (first["status"], first["reason"]) == ("unprocessed", None)
            with database.write() as connection:
                add(connection, 1, 2)
            told = next(reader.events("items")).data
            assert [item["status"] for item in told["items"]] == ["pending"]
            assert not told["is_whole"]
            with database.write() as connection:
                add(connection, 60, 2)
            event = reader.read()
            assert event is not None
            assert (event.name, event.data) == ("reload", {"topic": "items"})


def test_one_rendering_serves_every_stream_with_the_same_bytes(
    served: Served, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered: list[object] = []
    render = JsonRenderer.render

    def counted(self: JsonRenderer, kind: object, data: object) -> str | None:
        rendered.append(data)
        return render(self, kind, data)  # type: ignore[arg-type]  # as it came

    monkeypatch.setattr(JsonRenderer, "render", counted)
    (run_id,) = waiting_runs(served.application, 1)
    readers = [EventReader(served.server.url, "runs") for _ in range(10)]
    cancel_all(database_url, [run_id])
    told = [next(reader.events("runs")) for reader in readers]
    assert all(event == told[0] for event in told)
    assert len(rendered) == 1
    for reader in readers:
        reader.close()
    hub = served.server.app.state.stream_hub
    wait_until(lambda: not hub.subscriptions, "the streams are gone")
    assert not hub._followed
    wait_until(
        lambda: all(task.done() for name, task in hub._tasks.items() if name != "end"),
        "nothing is read any more",
    )


def test_a_database_that_cannot_be_read_for_a_while_loses_nothing(
    served: Served, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (run_id,) = waiting_runs(served.application, 1)
    looks: list[str] = []
    now = changes.now

    def away(connection: object) -> object:
        looks.append("failed")
        if len(looks) < 3:
            raise TsuzukiError("away")
        return now(connection)  # type: ignore[arg-type]  # as it came

    with EventReader(served.server.url, "runs") as reader:
        monkeypatch.setattr(changes, "now", away)
        cancel_all(database_url, [run_id])
        assert reader.moves(1) == [(run_id, 2)]
    assert len(looks) >= 3


@pytest.mark.parametrize(
    ("topics", "status", "code"),
    [
        ("", 422, "topic_unknown"),
        ("run", 422, "topic_unknown"),
        ("runs,worker", 422, "topic_unknown"),
        ("job:", 422, "topic_unknown"),
        ("run:x", 422, "topic_unknown"),
        ("run:9223372036854775808", 422, "topic_unknown"),
        ("logs:1:99999999999", 422, "topic_unknown"),
        (",".join(["runs"] * 21), 422, "topic_unknown"),
        ("job:helo", 404, "job_unknown"),
        ("run:999999", 404, "run_unknown"),
        ("logs:999999", 404, "run_unknown"),
    ],
)
def test_what_cannot_be_followed_is_refused(
    served: Served, topics: str, status: int, code: str
) -> None:
    answer = served.client.get(f"stream?topics={topics}")
    assert (answer.status, answer.code) == (status, code)


def test_a_topic_that_is_misspelt_is_answered_with_the_right_one(served: Served) -> None:
    hint = served.client.get("stream?topics=worker").json["hint"]
    assert hint.startswith('Did you mean "workers"?')
    assert "logs:RUN:LINE" in hint


@pytest.mark.parametrize("caller", [None, "expired", *FixedAuthenticator.PRINCIPALS])
def test_each_topic_needs_its_right(served: Served, caller: str | None) -> None:
    waiting_runs(served.application, 1)
    principal = FixedAuthenticator.PRINCIPALS.get(caller or "")
    for topic, right in TOPICS.items():
        expected = 401 if principal is None else 200 if principal.may(right) else 403
        with EventReader(served.server.url, topic, token=caller) as reader:
            # Run 1 may be pruned by another test: who may read is told so.
            assert reader.answer.status in ({200, 404} if expected == 200 else {expected})


def test_there_are_so_many_streams_and_no_more(served: Served) -> None:
    hub = served.server.app.state.stream_hub
    before = hub.limits.streams, hub.limits.streams_of_one
    wait_until(lambda: not hub.subscriptions, "the streams of other tests are gone")
    hub.limits.streams, hub.limits.streams_of_one = 3, 2
    try:
        with EventReader(served.server.url, "runs"), EventReader(served.server.url, "runs"):
            refused = served.client.as_("viewer").get("stream?topics=runs")
            assert (refused.status, refused.code) == (429, "streams_of_one")
            (run_id,) = waiting_runs(served.application, 1)
            with opened_log(served, run_id) as answer:
                assert answer.status == 429
            with EventReader(served.server.url, "runs", token="admin"):
                refused = served.client.as_("operator").get("stream?topics=runs")
                assert (refused.status, refused.code) == (503, "streams_of_server")
                assert refused.headers["retry-after"] == "10"
    finally:
        hub.limits.streams, hub.limits.streams_of_one = before
