"""What functions in threads log with `logging`, in a process whose log is Tsuzuki's own."""

import asyncio
import logging
import sys
import threading
import warnings
from collections.abc import Iterator

import pytest

from support.python_calls import Call
from tsuzuki.engine.log_capture import capture
from tsuzuki.engine.run_context import RunContext


class Records(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.names: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.names.append(record.name)


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> Iterator[Records]:
    root, records = logging.getLogger(), Records()
    monkeypatch.setattr(root, "handlers", [])
    monkeypatch.setattr(logging, "raiseExceptions", True)
    monkeypatch.setattr(threading, "excepthook", threading.excepthook)
    monkeypatch.setattr(sys, "unraisablehook", sys.unraisablehook)
    capture(records)
    yield records
    logging.captureWarnings(False)


def logs() -> None:
    logging.getLogger("orders").warning("one %s", "record")
    logging.getLogger("orders").warning("%d", "not a number")


async def logs_async(run: RunContext) -> None:
    await asyncio.to_thread(logging.getLogger("orders").error, "in a thread of its own")


def warns() -> None:
    warnings.warn("old", stacklevel=1)


def test_what_a_function_logs_is_in_its_log_with_its_level(captured: Records, call: Call) -> None:
    logging.getLogger("orders").warning("outside of runs")
    assert call(logs)[1].of("log") == ["WARNING orders: one record"]
    assert call(logs_async)[1].of("log") == ["ERROR orders: in a thread of its own"]
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        (line,) = call(warns)[1].of("log")
    assert line.startswith("WARNING py.warnings: ")
    assert captured.names == ["orders"] * 4 + ["py.warnings"]
