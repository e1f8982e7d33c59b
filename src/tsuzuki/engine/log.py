"""The engine's log: named events with fields, through the standard `logging` tree under `tsuzuki`.

A program that embeds the engine gets ordinary log records it can filter; the command line prints them as
text or as JSON lines. Nothing is configured here, and a disabled level costs next to nothing.
"""

import json
import logging
from collections.abc import MutableMapping
from datetime import UTC, datetime
from typing import Any

import structlog
from structlog.typing import WrappedLogger

FIELDS = "tsuzuki_fields"


def _to_record(
    _logger: WrappedLogger, _method: str, event: MutableMapping[str, Any]
) -> tuple[tuple[str], dict[str, Any]]:
    """`event key=value …` as the message, and the fields themselves as `extra`."""
    name = str(event.pop("event"))
    exc_info = event.pop("exc_info", None)
    fields = {key: value for key, value in event.items() if value is not None}
    parts = [name, *(f"{key}={value}" for key, value in fields.items())]
    extra = {FIELDS: {"event": name, **fields}}
    return (" ".join(parts),), {"extra": extra, "exc_info": exc_info}


log: structlog.stdlib.BoundLogger = structlog.wrap_logger(
    logging.getLogger("tsuzuki"),
    wrapper_class=structlog.stdlib.BoundLogger,
    processors=[structlog.stdlib.filter_by_level, _to_record],
)


def is_enabled_for(level: int) -> bool:
    """Whether records of this level are kept. Checked before logging hundreds of runs one by one."""
    return logging.getLogger("tsuzuki").isEnabledFor(level)


def fields_of(record: logging.LogRecord) -> dict[str, Any]:
    """The event and its fields. A record of another library has its name and its error instead: how that
    library came to the error is of no use to a reader of this log."""
    ours: dict[str, Any] | None = getattr(record, FIELDS, None)
    if ours is not None:
        return ours
    fields = {"event": record.getMessage(), "logger": record.name}
    problem = record.exc_info[1] if record.exc_info else None
    if problem is not None:
        fields["error"] = f"{type(problem).__name__}: {problem}"
    return fields


class JsonLines(logging.Formatter):
    """One JSON object per record."""

    def format(self, record: logging.LogRecord) -> str:
        fields = fields_of(record)
        document = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat().replace("+00:00", "Z"),
            "level": record.levelname.lower(),
            **fields,
        }
        if record.exc_info and hasattr(record, FIELDS):
            document["traceback"] = self.formatException(record.exc_info)
        return json.dumps(document, ensure_ascii=False, default=str)


class TextLines(logging.Formatter):
    """Human-readable: time, level, event, fields. What takes several lines, such as a traceback, has time and
    level on each of them."""

    def __init__(self) -> None:
        super().__init__("%(asctime)s %(levelname)-7s %(message)s", "%H:%M:%S")

    def format(self, record: logging.LogRecord) -> str:
        if not hasattr(record, FIELDS):
            event, *fields = fields_of(record).items()
            message = " ".join([str(event[1]), *(f"{key}={value}" for key, value in fields)])
            changed = {"msg": message, "args": None, "exc_info": None, "exc_text": None}
            record = logging.makeLogRecord({**vars(record), **changed})
        first, *more = super().format(record).splitlines()
        lead = f"{record.asctime} {record.levelname:<7} | "
        return "\n".join([first, *(lead + line for line in more)])
