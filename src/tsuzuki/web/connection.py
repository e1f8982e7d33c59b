"""A connection of the HTTP server, as uvicorn's own with two differences.

The answer of a stream can close it at once. And the head of an answer is sent together with its body: two packets cost
the server a second call of the system, and wake the client twice.
"""

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from tsuzuki.web.stream.response import ABORT

HEAD = b"HTTP/1.1 "


class Connection(H11Protocol):
    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the parent has it
        joined = JoinedWrites(transport, self.loop)
        self.app_state = {**self.app_state, ABORT: joined.abort}
        super().connection_made(joined)


class JoinedWrites(asyncio.Transport):
    """Keeps a head until it is known what follows it: at the latest until the event loop's next turn, so the head of a
    stream that has nothing to say yet is sent too."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self._transport = transport
        self._loop = loop
        self._head = b""

    def write(self, data: Any) -> None:
        if self._head:
            data, self._head = self._head + data, b""
        elif data.startswith(HEAD):
            self._head = data
            self._loop.call_soon(self._send_head)
            return
        if data:
            self._transport.write(data)

    def _send_head(self) -> None:
        if self._head:
            self.write(b"")

    def close(self) -> None:
        self._send_head()
        self._transport.close()

    def abort(self) -> None:
        self._head = b""
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        self._transport.set_protocol(protocol)
