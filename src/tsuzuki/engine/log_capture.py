"""Captures everything else that would write to stderr by itself, so that each line there is of the log's format:
records of other libraries, warnings, and exceptions that end a thread or cannot be raised. What a run's function logs
is in the log of the run too.
"""

import logging
import sys
import threading
from typing import Any

from tsuzuki.engine.log import log
from tsuzuki.engine.run_context import run_of_this_context


def capture(handler: logging.Handler) -> None:
    """From now on, in this process. Records of other libraries are written from WARNING on."""
    root = logging.getLogger()
    root.handlers = [one for one in root.handlers if not isinstance(one, _Captured)]
    root.addHandler(_Captured(handler))
    # A log that cannot be written, because its reader has gone, is not reported there again.
    logging.raiseExceptions = False
    logging.captureWarnings(True)
    threading.excepthook = _log_end_of_thread
    sys.unraisablehook = _log_unraisable


class _Captured(logging.Handler):
    def __init__(self, handler: logging.Handler) -> None:
        super().__init__(logging.WARNING)
        self._handler = handler

    def createLock(self) -> None:  # noqa: N802 -- as `logging` calls it
        # None: a function may wait here for space in its log, and nobody else is to wait for it.
        self.lock = None

    def emit(self, record: logging.LogRecord) -> None:
        self._handler.handle(record)
        run = run_of_this_context()
        if run is not None:
            try:
                line = f"{record.levelname} {record.name}: {record.getMessage()}"
            except Exception:  # noqa: BLE001 -- whatever the arguments of a function's record raise
                return
            run.log(line)


def _log_end_of_thread(ended: Any) -> None:
    if ended.exc_type is SystemExit:
        return
    log.error(
        "thread ended with an exception",
        thread=ended.thread.name if ended.thread else None,
        error=repr(ended.exc_value),
        exc_info=(ended.exc_type, ended.exc_value, ended.exc_traceback),
    )


def _log_unraisable(failed: Any) -> None:
    log.warning(
        "exception ignored",
        where=failed.err_msg or repr(failed.object),
        error=repr(failed.exc_value),
    )
