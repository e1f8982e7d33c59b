"""Size limits of what a run leaves in the database. A longer result is refused, a longer error is cut."""

from typing import Any

from tsuzuki.model import jsontext
from tsuzuki.model.errors import UsageError
from tsuzuki.model.storable_text import storable

RESULT_BYTES_MAX = 1024 * 1024
"""Of a result, as JSON in UTF-8: 1 MiB."""

ERROR_BYTES_MAX = 64 * 1024
"""Of an error, in UTF-8: 64 KiB."""

LOG_LINE_BYTES_MAX = 16 * 1024
"""Of a log line, in UTF-8: 16 KiB. A longer one becomes several lines."""

CUT_MARK = " … (cut)"


def result_text(result: Any) -> str:
    """The JSON text of a result, as it is stored. Raises `UsageError` if JSON cannot express it or it is too large."""
    text = jsontext.encode(result, replace=storable)
    size = len(text) if text.isascii() else len(text.encode("utf-8"))
    if size > RESULT_BYTES_MAX:
        raise UsageError(
            f"the result has {size} bytes of JSON; the limit is {RESULT_BYTES_MAX}",
            hint="Write it to a file or table, and return the name of that.",
            code="result_too_large",
        )
    return text


def stored_result(result: Any) -> Any:
    """A result as it will be read back. Raises `UsageError` if it cannot be stored."""
    return jsontext.decode(result_text(result))


def cut_error(error: str) -> str:
    """An error within its limit, with a mark at its end if it was cut."""
    if len(error) * 4 <= ERROR_BYTES_MAX:
        return error
    encoded = storable(error).encode("utf-8")
    if len(encoded) <= ERROR_BYTES_MAX:
        return error
    kept = encoded[: ERROR_BYTES_MAX - len(CUT_MARK.encode("utf-8"))]
    return kept.decode("utf-8", "ignore") + CUT_MARK
