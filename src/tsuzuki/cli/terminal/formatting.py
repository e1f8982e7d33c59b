"""Format values for people, in tables only: machine-readable output contains the raw values."""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any

from tsuzuki.cli.terminal.values import plain_text, table_text
from tsuzuki.model.differences import differences

_LONGER_THAN_SECONDS = (("d", 86_400), ("h", 3_600), ("m", 60))
_LARGER_THAN_BYTES = ("KiB", "MiB", "GiB", "TiB")


def format_number(value: object) -> str:
    """10 instead of 10.0: a reader does not care about kinds of numbers."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return table_text(value)


def format_duration(seconds: float | None) -> str:
    """As it is written in the file: 90 is 1m30s."""
    if seconds is None:
        return "-"
    words = ""
    for unit, length in _LONGER_THAN_SECONDS:
        count, seconds = divmod(seconds, length)
        words += f"{count:.0f}{unit}" if count else ""
    return words if words and not seconds else f"{words}{seconds:g}s"


def format_size(size_bytes: int) -> str:
    """Bytes are counted; larger units have one decimal."""
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    size = float(size_bytes)
    unit = ""
    for unit in _LARGER_THAN_BYTES:  # noqa: B007 - the last one is for whatever is larger still
        size /= 1024
        if size < 1024:
            break
    return f"{size:.1f} {unit}"


def format_list(values: Sequence[object]) -> str:
    return ", ".join(map(plain_text, values)) or "-"


def format_stored_time(text: str | None) -> str:
    """A time that is stored as text, written like every other one."""
    return table_text(None if text is None else datetime.fromisoformat(text))


def moment_of(value: Any, written_by: Callable[[Any], str]) -> datetime | None:
    """The moment in a cell that is written as a full time; None for anything else."""
    if written_by is format_stored_time and value is not None:
        return datetime.fromisoformat(value)
    return value if written_by is table_text and isinstance(value, datetime) else None


def short_time(now: datetime, *, seconds: bool = True) -> Callable[[datetime | None], str]:
    """Today the time, otherwise the day; all in UTC, as the Z says."""
    today = now.astimezone(UTC).date()

    def short(moment: datetime | None) -> str:
        if moment is None:
            return "-"
        there = moment.astimezone(UTC)
        if there.date() == today:
            return f"{there:%H:%M:%S}Z" if seconds else f"{there:%H:%M}Z"
        return f"{there:%m-%d %H:%M}Z" if there.year == today.year else f"{there:%Y-%m-%d}"

    return short


def ago(now: datetime) -> Callable[[datetime | None], str]:
    """How long ago, in whole units of the largest kind that fits."""

    def words(moment: datetime | None) -> str:
        if moment is None:
            return "-"
        seconds = (now - moment).total_seconds()
        for unit, length in (("d", 86_400), ("h", 3_600), ("m", 60)):
            if seconds >= length:
                return f"{seconds // length:.0f}{unit} ago"
        return "just now"

    return words


def describe_changes(before: Any, after: Any) -> list[str]:
    """What differs, part by part, from which value to which; what is new or gone has no parts."""
    if before is None or after is None:
        return []
    return [
        f"{path}: {format_number(old)} → {format_number(new)}".removeprefix(": ")
        for path, old, new in differences(before, after)
    ]
