"""How a stream ends: with its credentials, its server, a reader that does not read; and how it goes on after a kill."""

import asyncio
import signal
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from support.event_stream import EventReader, cancel_all, waiting_runs
from support.waiting import wait_until
from support.web_client import SESSION_COOKIE, Client, Served, served_application
from support.web_process import serving
from tsuzuki.model.access import OwnerMode, Role
from tsuzuki.services.access.sessions import SignInPlace
from tsuzuki.web.server import Address, WebServer
from tsuzuki.wiring.application import Application, opened

PASSWORD = "correct horse battery"


def url_of(folder: Path) -> str:
    return f"sqlite:///{folder / 'db.sqlite'}"


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with served_application(tmp_path, database_url=url_of(tmp_path)) as served:
        served.application.jobs.define("hello", {"command": ["true"]})
        yield served


@pytest.fixture(scope="module")
def protected(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server with the users and tokens of its database; `ada` is an admin."""
    folder = tmp_path_factory.mktemp("workspace")
    with served_application(folder, database_url=url_of(folder), fixed=False) as served:
        application = served.application
        application.users.add("ada", PASSWORD, role=Role.ADMIN, by=application.principal)
        yield served


@pytest.fixture
def unprotected(tmp_path: Path) -> Iterator[Served]:
    """A server without users."""
    with served_application(tmp_path, database_url=url_of(tmp_path), fixed=False) as served:
        yield served


def end_of(reader: EventReader) -> str:
    """The code with which the stream ended."""
    *_, last = reader.read_all()
    assert last.name == "end"
    return str(last.data["code"])


def test_a_stream_without_credentials_ends_with_the_first_user(unprotected: Served) -> None:
    application = unprotected.application
    with EventReader(unprotected.server.url, "runs", token=None) as reader:
        me = unprotected.client.as_(None).get("me").json
        assert (me["role"], me["expires_at"]) == ("admin", None)
        application.users.add("ada", PASSWORD, role=Role.ADMIN, by=application.principal)
        assert end_of(reader) == "not_authenticated"
    assert unprotected.client.as_(None).get("me").status == 401


def test_a_stream_ends_when_its_token_is_revoked(protected: Served) -> None:
    application = protected.application
    by = application.principal
    made, kept = (application.tokens.create(name, role=Role.VIEWER, by=by) for name in "ab")
    me = protected.client.as_(made.text).get("me").json
    assert (me["actor"], me["token_id"], me["scopes"]) == ("token:a", made.token.id, None)
    assert me["expires_at"] is not None
    with (
        EventReader(protected.server.url, "runs", token=made.text) as reader,
        EventReader(protected.server.url, "runs", token=kept.text),
    ):
        application.tokens.revoke("a", by=application.principal)
        assert end_of(reader) == "not_authenticated"
        hub = protected.server.app.state.stream_hub
        wait_until(
            lambda: [one.credentials.actor for one in hub.subscriptions] == ["token:b"],
            "only the other stream is left",
        )
    with EventReader(protected.server.url, "runs", token=made.text, last_id="x") as reader:
        assert reader.answer.status == 401


@contextmanager
def signed_in(application: Application, url: str, name: str) -> Iterator[tuple[EventReader, int]]:
    application.users.add(name, PASSWORD, role=Role.VIEWER, by=application.principal)
    place = SignInPlace(address="127.0.0.1")
    session = application.sessions.sign_in(name, PASSWORD, place=place)
    cookie = f"{SESSION_COOKIE}={session.secret}"
    me = Client(url, None).request("GET", "me", headers={"Cookie": cookie}).json
    assert (me["user"], me["session_id"]) == (name, session.session.id)
    with EventReader(url, "runs", token=None, cookie=cookie) as reader:
        yield reader, session.session.id


def test_a_stream_ends_with_its_session(protected: Served) -> None:
    application = protected.application
    with signed_in(application, protected.server.url, "bob") as (reader, session_id):
        application.sessions.end(session_id, by=application.principal)
        assert end_of(reader) == "not_authenticated"


def test_a_stream_ends_when_its_user_is_removed(protected: Served) -> None:
    application = protected.application
    with signed_in(application, protected.server.url, "eve") as (reader, _):
        application.users.remove("eve", by=application.principal)
        assert end_of(reader) == "not_authenticated"


async def read_moves(url: str, count: int, ready: asyncio.Semaphore) -> int:
    """How many moves one of many streams is told, until it has so many."""
    place = urlsplit(url)
    reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=2**22)
    request = "GET /api/v1/stream?topics=runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer admin\r\n\r\n"
    writer.write(request.encode())
    seen = 0
    with closing(writer):
        while seen < count:
            line = await reader.readline()
            assert line, "it was cut off"
            if line.startswith(b"event: ready"):
                ready.release()
            seen += line.count(b'"to_state":"CANCELED"')
    return seen


def unread_stream(url: str) -> socket.socket:
    """A stream whose reader takes nothing, and has little space for it."""
    place = urlsplit(url)
    unread = socket.socket()
    unread.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    unread.connect((place.hostname, place.port))
    request = "GET /api/v1/stream?topics=runs HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer viewer\r\n\r\n"
    unread.sendall(request.encode())
    return unread


def test_one_that_does_not_read_is_cut_off_and_two_hundred_others_are_not(
    served: Served, tmp_path: Path
) -> None:
    hub = served.server.app.state.stream_hub
    hub.limits.queue_bytes = 150_000
    # A socket of the server takes the size of its listener's: so that little is in the kernel.
    served.server._listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 8192)
    rounds, each, readers = 8, 200, 200
    run_ids = waiting_runs(served.application, rounds * each)

    async def follow() -> list[int]:
        ready = asyncio.Semaphore(0)
        tasks = [
            asyncio.create_task(read_moves(served.server.url, len(run_ids), ready))
            for _ in range(readers)
        ]
        for _ in tasks:
            await ready.acquire()
        for number in range(rounds):
            part = run_ids[number * each : (number + 1) * each]
            await asyncio.to_thread(cancel_all, url_of(tmp_path), part)
        return await asyncio.gather(*tasks)

    with closing(unread_stream(served.server.url)):
        wait_until(lambda: len(hub.subscriptions) == 1, "it is there")
        assert asyncio.run(follow()) == [len(run_ids)] * readers
        wait_until(lambda: not hub.subscriptions, "the one that does not read was cut off")


def test_the_server_stops_in_time_although_streams_are_open(served: Served, tmp_path: Path) -> None:
    readers = [EventReader(served.server.url, "runs,workers,progress") for _ in range(49)]
    with closing(unread_stream(served.server.url)):
        hub = served.server.app.state.stream_hub
        wait_until(lambda: len(hub.subscriptions) == 50, "all are open")
        cancel_all(url_of(tmp_path), waiting_runs(served.application, 2000))
        assert [reader.moves(1)[0] for reader in readers]
        assert served.server.stop()
    for reader in readers:
        reader.read_all()
        reader.close()


def test_a_killed_server_is_resumed_by_the_next_one(tmp_path: Path) -> None:
    with opened(database_url=url_of(tmp_path), environ={}, cwd=tmp_path) as application:
        application.jobs.define("hello", {"command": ["true"]})
        run_ids = waiting_runs(application, 30)
        expected = []
        words = ("web", "--listen", "127.0.0.1:0")
        environ = {"TSUZUKI_DATABASE_URL": url_of(tmp_path), "TSUZUKI_WEB_OWNER_MODE": "open"}
        with (
            serving(tmp_path, *words, environ=environ) as (process, url),
            EventReader(url, "runs", token=None) as reader,
        ):
            expected += cancel_all(url_of(tmp_path), run_ids[:10])
            seen = reader.moves(10)
            expected += cancel_all(url_of(tmp_path), run_ids[10:20])
            process.send_signal(signal.SIGKILL)
            process.wait(120)
        expected += cancel_all(url_of(tmp_path), run_ids[20:])
        # The last id that was read, whether or not more was sent before the kill.
        server = WebServer(
            application, Address(host="127.0.0.1", port=0), owner_mode=OwnerMode.OPEN
        )
        server.start()
        with EventReader(server.url, "runs", token=None, last_id=reader.last_id) as reader:
            seen += reader.moves(20)
        server.stop()
    assert seen == expected
