"""Values in the words of a reader, for tables only: a machine is given the value itself."""

from collections.abc import Sequence
from datetime import datetime

from tsuzuki.cli.values import plain_text, table_text

_LONGER_THAN_SECONDS = (("d", 86_400), ("h", 3_600), ("m", 60))
_LARGER_THAN_BYTES = ("KiB", "MiB", "GiB", "TiB")


def number_words(value: object) -> str:
    """10 instead of 10.0: a reader does not care about kinds of numbers."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return table_text(value)


def duration_words(seconds: float | None) -> str:
    """As it is written in the file: 90 is 1m30s."""
    if seconds is None:
        return "-"
    words = ""
    for unit, length in _LONGER_THAN_SECONDS:
        count, seconds = divmod(seconds, length)
        words += f"{count:.0f}{unit}" if count else ""
    return words if words and not seconds else f"{words}{seconds:g}s"


def size_words(size_bytes: int) -> str:
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


def list_words(values: Sequence[object]) -> str:
    return ", ".join(map(plain_text, values)) or "-"


def time_words(moments: Sequence[datetime]) -> str:
    return ", ".join(map(table_text, moments)) or "-"
