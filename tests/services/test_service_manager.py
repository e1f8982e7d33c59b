"""What a service manager is told: real datagrams, of this module and of whole processes."""

import os
import signal
import socket
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from support.forked_program import ForkedProgram
from support.workspace import process_environment
from tsuzuki.cli import run_cli
from tsuzuki.services.service_manager import ServiceManager

SECONDS = 60.0
PID = 4711


class Manager:
    """The socket of a service manager."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(SECONDS)
        self._socket.bind(str(path))

    def heard(self) -> list[str]:
        return self._socket.recv(4096).decode().splitlines()

    def wait_for(self, line: str) -> list[str]:
        while line not in (lines := self.heard()):
            pass
        return lines

    def close(self) -> None:
        self._socket.close()


@pytest.fixture
def manager() -> Iterator[Manager]:
    # Not below tmp_path: a socket address has at most 107 bytes.
    with TemporaryDirectory(prefix="tsuzuki-") as folder:
        manager = Manager(Path(folder) / "notify")
        yield manager
        manager.close()


def environment(manager: Manager, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": str(manager.path), **more}


def test_the_manager_is_told_when_it_is_ready_and_when_it_stops(manager: Manager) -> None:
    ours = ServiceManager(environment(manager), pid=PID)
    ours.ready("Running\non it")
    assert manager.heard() == ["READY=1", "STATUS=Running on it"]
    ours.stopping("Waiting")
    assert manager.heard() == ["STOPPING=1", "STATUS=Waiting"]


def test_it_is_alive_twice_as_often_as_asked_but_not_while_it_is_not(manager: Manager) -> None:
    asked: list[bool] = []

    def is_alive() -> bool:
        asked.append(len(asked) in (0, 3))
        return asked[-1]

    ours = ServiceManager(environment(manager, WATCHDOG_USEC="2000"), pid=PID)
    assert ours.alive_interval_seconds == 0.001
    with ours.told_alive(is_alive):
        assert [manager.heard(), manager.heard()] == [["WATCHDOG=1"]] * 2
    assert asked[:4] == [True, False, False, True]


@pytest.mark.parametrize(
    "environ",
    [
        {},
        {"NOTIFY_SOCKET": "/nowhere/at/all"},
        {"NOTIFY_SOCKET": "vsock:2:9999"},
        {"NOTIFY_SOCKET": "/nowhere", "WATCHDOG_USEC": "many"},
    ],
)
def test_without_a_manager_that_receives_nothing_happens(environ: dict[str, str]) -> None:
    ours = ServiceManager(environ, pid=PID)
    ours.ready("Running")
    with ours.told_alive(lambda: True):
        pass


def test_signs_of_life_that_another_process_is_asked_for_are_not_sent(manager: Manager) -> None:
    asked = environment(manager, WATCHDOG_USEC="2000", WATCHDOG_PID=str(PID + 1))
    assert ServiceManager(asked, pid=PID).alive_interval_seconds is None


def test_an_abstract_address_is_used() -> None:
    name = f"tsuzuki-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as receiver:
        receiver.settimeout(SECONDS)
        receiver.bind("\0" + name)
        ServiceManager({"NOTIFY_SOCKET": f"@{name}"}, pid=PID).ready("Running")
        assert receiver.recv(4096).startswith(b"READY=1")


@pytest.mark.parametrize(
    "words", [("up", "--listen", "127.0.0.1:0"), ("web", "--listen", "127.0.0.1:0")]
)
def test_a_process_says_that_it_is_ready_alive_and_stopping(
    manager: Manager, tmp_path: Path, words: tuple[str, ...]
) -> None:
    assert run_cli(("--quiet", "init"), environ={}, cwd=tmp_path) == 0
    environ = process_environment(environment(manager, WATCHDOG_USEC="200000"))
    process = ForkedProgram(words, cwd=tmp_path, env=environ)
    try:
        assert manager.wait_for("READY=1")[1].startswith("STATUS=")
        manager.wait_for("WATCHDOG=1")
        process.send_signal(signal.SIGTERM)
        manager.wait_for("STOPPING=1")
        assert process.wait(SECONDS) == 0
    finally:
        process.kill()
        process.wait()
