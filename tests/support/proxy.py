"""A TCP proxy between a process and a server, to simulate network faults.

It forwards bytes from a local port to a socket file or to a port of this machine. While it is silent it accepts
connections and bytes and forwards nothing, like a network that drops packets; what was in flight arrives after
`mend`. While it refuses, new connections fail and existing ones are reset.
"""

import socket
import struct
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self

CHUNK_BYTES = 65_536
RESET = struct.pack("ii", 1, 0)
"""SO_LINGER so that closing sends a reset and nothing else."""


class Proxy:
    """Forwards from when it is made until it is left."""

    def __init__(self, target: Path | int) -> None:
        """`target` is the socket file of a server, or its port."""
        self._target = target
        self._flows = threading.Event()
        self._flows.set()
        self._lock = threading.Lock()
        self._sockets: set[socket.socket] = set()
        self.port = 0
        self._listen()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        self.refuse()
        self._flows.set()

    def url(self, database: str) -> str:
        """URL of a database through the proxy, if the server is PostgreSQL."""
        return f"postgresql://postgres@127.0.0.1:{self.port}/{database}"

    def fall_silent(self) -> None:
        """Forward nothing in either direction, without an error."""
        self._flows.clear()

    def refuse(self) -> None:
        """Refuse new connections, and reset the existing ones."""
        # A thread blocked in accept keeps the port open until it is woken.
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.reset()

    def reset(self) -> None:
        """Reset every connection; clients may reconnect."""
        with self._lock:
            dropped, self._sockets = self._sockets, set()
        for one in dropped:
            _abort(one)

    def mend(self) -> None:
        """Forward again."""
        self._flows.set()
        if self._listener.fileno() < 0:
            self._listen()

    def _listen(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", self.port), reuse_port=False)
        self.port = self._listener.getsockname()[1]
        threading.Thread(target=self._accept, args=(self._listener,), daemon=True).start()

    def _accept(self, listener: socket.socket) -> None:
        with suppress(OSError):
            while True:
                client, _ = listener.accept()
                threading.Thread(target=self._connect, args=(client,), daemon=True).start()

    def _connect(self, client: socket.socket) -> None:
        with self._lock:
            self._sockets.add(client)
        self._flows.wait()
        is_port = isinstance(self._target, int)
        server = socket.socket(socket.AF_INET if is_port else socket.AF_UNIX)
        try:
            server.connect(("127.0.0.1", self._target) if is_port else str(self._target))
        except OSError:
            _abort(client)
            server.close()
            return
        with self._lock:
            self._sockets.add(server)
        threading.Thread(target=self._pump, args=(server, client), daemon=True).start()
        self._pump(client, server)

    def _pump(self, source: socket.socket, drain: socket.socket) -> None:
        with suppress(OSError):
            while chunk := source.recv(CHUNK_BYTES):
                self._flows.wait()
                drain.sendall(chunk)
        self._flows.wait()
        with self._lock:
            self._sockets -= {source, drain}
        _close(source)
        _close(drain)


def _abort(one: socket.socket) -> None:
    with suppress(OSError):
        if one.family == socket.AF_INET:
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
    _close(one)


def _close(one: socket.socket) -> None:
    """Also wakes a thread that is blocked in it."""
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
    one.close()
