"""Tells the service manager (systemd, `Type=notify`) the state of this process, by datagrams to `NOTIFY_SOCKET`.

Without that variable nothing is sent, and a manager that does not receive is no error: the work goes on. With
`WatchdogSec=` it restarts a process that stops saying that it is alive.
"""

import json
import socket
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from urllib.parse import urlsplit

from tsuzuki.services.server_log import log

SOCKET_VARIABLE = "NOTIFY_SOCKET"
WATCHDOG_VARIABLE = "WATCHDOG_USEC"
WATCHDOG_PID_VARIABLE = "WATCHDOG_PID"

SEND_SECONDS = 1.0
ANSWER_SECONDS = 10.0
ANSWER_BYTES_MAX = 4096
AGAIN_FACTOR = 4
"""How much sooner is looked again after no answer: one that was late must not cost the process."""


class ServiceManager:
    """What is said to the manager that started this process, `pid`."""

    def __init__(self, environ: Mapping[str, str], *, pid: int) -> None:
        self._address = _address(environ.get(SOCKET_VARIABLE, ""))
        is_for_us = environ.get(WATCHDOG_PID_VARIABLE, str(pid)) == str(pid)
        microseconds = environ.get(WATCHDOG_VARIABLE, "") if is_for_us else ""
        self.alive_interval_seconds = (
            int(microseconds) / 1e6 / 2 if microseconds.isdecimal() and int(microseconds) else None
        )
        """Half of what the manager allows between two signs of life; None if it does not ask for them."""

    def ready(self, status: str) -> None:
        """Started: what is ordered after this service may start."""
        self._send("READY=1", f"STATUS={status}")

    def stopping(self, status: str) -> None:
        self._send("STOPPING=1", f"STATUS={status}")

    @contextmanager
    def told_alive(self, is_alive: Callable[[], bool]) -> Iterator[None]:
        """While the block runs, say that this process is alive, as often as the manager asks for; but not while
        it is not. The manager restarts it if that lasts."""
        seconds = self.alive_interval_seconds if self._address else None
        if seconds is None:
            yield
            return
        ended = threading.Event()
        thread = threading.Thread(
            target=self._tell_alive, args=(seconds, is_alive, ended), name="watchdog", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join(SEND_SECONDS)

    def _tell_alive(
        self, seconds: float, is_alive: Callable[[], bool], ended: threading.Event
    ) -> None:
        was_alive = True
        while not ended.is_set():
            if is_now_alive := is_alive():
                self._send("WATCHDOG=1")
            elif was_alive:
                log.error(
                    "process does not respond; the service manager will restart it",
                    within=seconds * 2,
                )
            was_alive = is_now_alive
            ended.wait(seconds if is_now_alive else seconds / AGAIN_FACTOR)

    def _send(self, *lines: str) -> None:
        if not self._address:
            return
        text = "\n".join(line.replace("\n", " ") for line in lines)
        with suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
            sender.settimeout(SEND_SECONDS)
            sender.sendto(text.encode(), self._address)


def answers(url: str) -> bool:
    """Whether the server at `url` answers `/livez`."""
    return _livez(url) is not None


def installation_at(url: str) -> str | None:
    """The installation that the server at `url` belongs to; None if no server of ours answers there."""
    try:
        return str(json.loads(_livez(url) or b"{}")["installation"])
    except (ValueError, LookupError, TypeError):  # another program, which answers anything
        return None


def _livez(url: str) -> bytes | None:
    connection = HTTPConnection(urlsplit(url).netloc, timeout=ANSWER_SECONDS)
    try:
        connection.request("GET", "/livez")
        answer = connection.getresponse()
        return answer.read(ANSWER_BYTES_MAX) if answer.status == 200 else None
    except (OSError, HTTPException):
        return None
    finally:
        connection.close()


def _address(name: str) -> str:
    """A path, or an abstract name (`@`) as the kernel writes it. Others, such as vsock, are not used."""
    if name.startswith("@"):
        return "\0" + name[1:]
    return name if name.startswith("/") else ""
