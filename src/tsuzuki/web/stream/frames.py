"""How events are written (text/event-stream), and the ids that a stream is resumed from.

An id has the position of each source of the stream: `runs~p.812:812:.17…;logs:42~17`.
"""

from collections.abc import Mapping

RETRY_MILLISECONDS = 2_000
ID_LENGTH_MAX = 30_000


def frame(event: str, data: str, event_id: str | None = None) -> bytes:
    """One event. A text of several lines is sent as such."""
    lines = [f"event: {event}"]
    # All that ends a line for a reader of events would end the field.
    text = data.replace("\r\n", "\n").replace("\r", "\n")
    lines += [f"data: {line}" for line in text.split("\n")]
    if event_id is not None:
        lines.append(f"id: {event_id}")
    return ("\n".join(lines) + "\n\n").encode("utf-8", "replace")


def opening(event_id: str, data: str) -> bytes:
    """The first event: how long to wait before the stream is resumed, and from where."""
    return f"retry: {RETRY_MILLISECONDS}\n".encode() + frame("ready", data, event_id)


def heartbeat(event_id: str) -> bytes:
    """Keeps the connection open, and lets the next one resume from here. No event for the reader."""
    return f": open\nid: {event_id}\n\n".encode()


def read_frame(written: bytes) -> tuple[str | None, str]:
    """The name of an event and its data, as `frame` wrote them; None for what is no event."""
    fields = [line.partition(": ")[::2] for line in written.decode("utf-8").split("\n")]
    data = "\n".join(value for name, value in fields if name == "data")
    return next((value for name, value in fields if name == "event"), None), data


def write_id(positions: Mapping[str, str]) -> str:
    return ";".join(f"{source}~{position}" for source, position in positions.items())


def read_id(text: str | None) -> dict[str, str]:
    """The positions in an id, of any origin: what is none is left out. So is a position with the end of a line in it,
    for it is written into the stream again."""
    if not text or len(text) > ID_LENGTH_MAX:
        return {}
    parts = (part.partition("~") for part in text.split(";"))
    return {
        source: position
        for source, tilde, position in parts
        if tilde and position.isascii() and (not position or position.isprintable())
    }
