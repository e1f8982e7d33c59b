"""Messages of JSON-RPC in a stream of bytes: a `Content-Length` header, an empty line, and so many bytes of JSON."""

import json
import re
from typing import Any, TypeAlias

Message: TypeAlias = dict[str, Any]

HEADER_BYTES_MAX = 8_192
_LENGTH = re.compile(rb"^content-length:[ \t]*(\d{1,15})[ \t]*$", re.IGNORECASE | re.MULTILINE)
_SHOWN_BYTES = 60


class ProtocolError(Exception):
    """What came is no message."""


def frame(message: Message) -> bytes:
    body = json.dumps({"jsonrpc": "2.0", **message}, ensure_ascii=False).encode(
        "utf-8", "surrogatepass"
    )
    return b"Content-Length: %d\r\n\r\n" % len(body) + body


class Frames:
    """Cuts a stream into messages."""

    def __init__(self, message_bytes_max: int) -> None:
        self._bytes_max = message_bytes_max
        self._received = bytearray()
        self._length: int | None = None

    def add(self, part: bytes) -> list[Message]:
        """The messages that are complete now. Raises `ProtocolError`, after which nothing can be read any more."""
        self._received += part
        found = []
        while (message := self._next()) is not None:
            found.append(message)
        return found

    def _next(self) -> Message | None:
        if self._length is None:
            self._length = self._header()
        if self._length is None or len(self._received) < self._length:
            return None
        body = bytes(self._received[: self._length])
        del self._received[: self._length]
        self._length = None
        return _decoded(body)

    def _header(self) -> int | None:
        end = self._received.find(b"\r\n\r\n", 0, HEADER_BYTES_MAX)
        is_too_long = end < 0 and len(self._received) >= HEADER_BYTES_MAX
        if is_too_long or not _may_be_header(self._received):
            raise ProtocolError(f"no message header: {_shown(self._received)}")
        if end < 0:
            return None
        header = bytes(self._received[:end]).replace(b"\r", b"")
        length = _LENGTH.search(header)
        if length is None:
            raise ProtocolError(f"a header without a length: {_shown(header)}")
        if int(length[1]) > self._bytes_max:
            raise ProtocolError(
                f"a message of {int(length[1])} bytes, above the limit of {self._bytes_max}"
            )
        del self._received[: end + 4]
        return int(length[1])


def _may_be_header(received: bytearray) -> bool:
    """Both headers that there are start with `Content-`."""
    return received[:8].lower() == b"content-"[: len(received[:8])]


def _decoded(body: bytes) -> Message:
    try:
        message = json.loads(body)
    except (ValueError, RecursionError):
        raise ProtocolError(f"invalid JSON in a message: {_shown(body)}") from None
    if not isinstance(message, dict):
        raise ProtocolError(f"a message that is not an object: {_shown(body)}")
    return message


def _shown(received: bytes | bytearray) -> str:
    return ascii(bytes(received[:_SHOWN_BYTES]).decode("utf-8", "replace"))
