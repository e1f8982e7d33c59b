"""Where the log of this process is written: to stderr, as text or as JSON lines."""

import logging
import sys

from tsuzuki.engine.log import JsonLines, TextLines


def log_to_stderr(*, level: int, as_json: bool = False) -> None:
    """From now on the log is written, in place of where it was written before."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(JsonLines() if as_json else TextLines())
    logger = logging.getLogger("tsuzuki")
    logger.handlers = [handler]
    logger.propagate = False
    logger.setLevel(level)
