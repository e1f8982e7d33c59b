"""A deadline for a whole HTTP exchange: connecting, encrypting, sending, every byte of head and body.

The library's timeouts are for one read each, so a server that sends a byte now and then is waited for without
end. Here every operation on the network gets what is left until the deadline of the thread that does it, and
none if nothing is left.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpcore2
import httpx2

from tsuzuki.model.clock import Clock


class ExchangeDeadline:
    """When the exchange of each thread must be over. One exchange at a time is under way in a thread."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._of_thread = threading.local()

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """The exchange in this block ends within so many seconds."""
        self._of_thread.ends_at = self._clock.monotonic() + seconds
        try:
            yield
        finally:
            self._of_thread.ends_at = None

    def left(self, timeout: float | None, late: type[Exception]) -> float | None:
        """The timeout of one operation, shortened to what is left. Raises `late` if nothing is."""
        ends_at: float | None = getattr(self._of_thread, "ends_at", None)
        if ends_at is None:  # an idle connection is being closed
            return timeout
        left = ends_at - self._clock.monotonic()
        if left <= 0:
            raise late("the time for the whole exchange is over")
        return left if timeout is None else min(timeout, left)


class _Stream(httpcore2.NetworkStream):
    def __init__(self, stream: httpcore2.NetworkStream, deadline: ExchangeDeadline) -> None:
        self._stream = stream
        self._deadline = deadline

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        left = self._deadline.left(timeout, httpcore2.ReadTimeout)
        return self._stream.read(max_bytes, timeout=left)

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        left = self._deadline.left(timeout, httpcore2.WriteTimeout)
        self._stream.write(buffer, timeout=left)

    def close(self) -> None:
        self._stream.close()

    def start_tls(
        self, ssl_context: Any, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore2.NetworkStream:
        left = self._deadline.left(timeout, httpcore2.ConnectTimeout)
        stream = self._stream.start_tls(ssl_context, server_hostname, timeout=left)
        return _Stream(stream, self._deadline)

    def get_extra_info(self, info: str) -> Any:
        return self._stream.get_extra_info(info)


class DeadlineNetwork(httpcore2.NetworkBackend):
    """A network whose connections all keep the deadline."""

    def __init__(self, backend: httpcore2.NetworkBackend, deadline: ExchangeDeadline) -> None:
        self._backend = backend
        self._deadline = deadline

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore2.NetworkStream:
        left = self._deadline.left(timeout, httpcore2.ConnectTimeout)
        stream = self._backend.connect_tcp(host, port, left, local_address, socket_options)
        return _Stream(stream, self._deadline)


def set_deadline(client: httpx2.Client, deadline: ExchangeDeadline) -> None:
    """Let every connection of a client keep the deadline, those through a proxy too."""
    # httpx2 has no parameter for the network of its transports, though the pools below them have one.
    for transport in (client._transport, *client._mounts.values()):  # noqa: SLF001 -- see above
        if isinstance(transport, httpx2.HTTPTransport):
            pool = transport._pool  # noqa: SLF001 -- see above
            network = pool._network_backend  # noqa: SLF001 -- see above
            pool._network_backend = DeadlineNetwork(network, deadline)  # noqa: SLF001 -- see above
