"""The log of a server process: in the engine's format, including the messages of the HTTP server."""

import logging

from tsuzuki.engine.log import is_enabled_for, log

__all__ = ["capture_server_log", "is_enabled_for", "log"]


class _Forwarding(logging.Handler):
    """Gives the records of another logger to our log."""

    def emit(self, record: logging.LogRecord) -> None:
        log.log(
            record.levelno, "web_server", said=record.getMessage(), exc_info=record.exc_info or None
        )


def capture_server_log() -> None:
    """From now on what the HTTP server logs is part of our log; its routine lines are for debugging."""
    logger = logging.getLogger("uvicorn")
    logger.handlers = [_Forwarding()]
    logger.propagate = False
    logger.setLevel(logging.WARNING)
