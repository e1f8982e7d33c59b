"""A process that is started before its PostgreSQL waits for it; one that the server refuses does not."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemons import Daemon
from support.databases import PostgresServer

WAITING = "database unreachable, waiting for it"


@pytest.fixture(scope="module")
def server() -> Iterator[PostgresServer]:
    server = PostgresServer()
    yield server
    server.stop()


@pytest.fixture
def url(server: PostgresServer) -> Iterator[str]:
    """Of a server that is down."""
    url = server.create()
    server.halt()
    yield url
    server.start_again()


@pytest.mark.slow
def test_a_process_waits_for_its_server(url: str, server: PostgresServer, tmp_path: Path) -> None:
    daemon = Daemon(url, tmp_path, "up", environ={})
    try:
        waiting = daemon.wait_for(WAITING)
        assert "is unavailable" in waiting["error"]
        assert waiting["hint"]
        server.start_again()
        daemon.wait_for("database reachable")
        daemon.wait_for("started")
        daemon.send(signal.SIGTERM)
        assert daemon.ended() == 0
        assert daemon.other_lines == []
    finally:
        daemon.process.kill()


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 0)])
def test_a_process_that_waits_for_its_server_ends_when_asked(
    url: str, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    daemon = Daemon(url, tmp_path, "worker", environ={})
    daemon.wait_for(WAITING)
    daemon.send(number)
    assert daemon.ended() == code


@pytest.mark.slow
def test_a_process_need_not_wait(url: str, tmp_path: Path) -> None:
    daemon = Daemon(url, tmp_path, "up", "--database-wait", "0", environ={})
    assert daemon.ended() == 5
    assert daemon.count(WAITING) == 0


@pytest.mark.slow
def test_a_database_that_the_server_does_not_have_is_not_waited_for(
    server: PostgresServer, tmp_path: Path
) -> None:
    daemon = Daemon(server.url("missing"), tmp_path, "up", environ={})
    assert daemon.ended() == 5
    assert daemon.count(WAITING) == 0
    assert "createdb" in "".join(daemon.other_lines)
