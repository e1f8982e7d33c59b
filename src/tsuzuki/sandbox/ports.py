"""Starts a stand-in on the first of several ports that is free."""

from collections.abc import Callable, Sequence
from typing import Protocol, TypeVar


class LocalServer(Protocol):
    """A server on 127.0.0.1 that runs between `start` and `stop`."""

    @property
    def port(self) -> int: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


ServerT = TypeVar("ServerT", bound=LocalServer)


class PortTaken(Exception):
    """None of the ports can be used; `port` is the last one that was tried."""

    def __init__(self, port: int, reason: str) -> None:
        super().__init__(f"port {port}: {reason}")
        self.port, self.reason = port, reason


def start_on(ports: Sequence[int], make: Callable[[int], ServerT]) -> ServerT:
    """Start the server that `make` returns for a port, on the first of `ports` that is free; 0 takes any free port.
    Raises `PortTaken`."""
    for port in ports:
        try:
            server = make(port)
            server.start()
        except OSError as problem:
            taken = PortTaken(port, str(problem.strerror))
        else:
            return server
    raise taken
