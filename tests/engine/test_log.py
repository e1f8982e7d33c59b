"""The engine's log: named events with fields, as ordinary records, and as text or JSON lines."""

import json
import logging
import re
import threading
import warnings
from collections.abc import Callable

import pytest

from tsuzuki.engine.log import FIELDS, JsonLines, TextLines, is_enabled_for, log
from tsuzuki.services.local_engine import log_to_stderr


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Callable[[], logging.LogRecord]:
    """The only record that was logged."""
    caplog.set_level(logging.INFO, logger="tsuzuki")

    def only() -> logging.LogRecord:
        (record,) = caplog.records
        return record

    return only


def test_an_event_is_a_record_with_its_fields_and_none_is_left_out(
    logged: Callable[[], logging.LogRecord],
) -> None:
    log.info("run ended", run=7, reason=None)
    record = logged()
    assert (record.name, record.levelname) == ("tsuzuki", "INFO")
    assert record.getMessage() == "run ended run=7"
    assert getattr(record, FIELDS) == {"event": "run ended", "run": 7}


def test_a_level_that_is_disabled_is_not_logged(
    logged: Callable[[], logging.LogRecord],
) -> None:
    log.debug("leader round")
    log.warning("no longer the leader")
    assert logged().getMessage() == "no longer the leader"
    assert (is_enabled_for(logging.DEBUG), is_enabled_for(logging.INFO)) == (False, True)


def test_a_json_line_has_time_level_event_fields_and_traceback(
    logged: Callable[[], logging.LogRecord],
) -> None:
    try:
        raise ValueError("no such book")
    except ValueError:
        log.exception("step failed", loop="work")
    document = json.loads(JsonLines().format(logged()))
    assert document.pop("at").endswith("Z")
    assert document.pop("traceback").endswith("ValueError: no such book")
    assert document == {"level": "error", "event": "step failed", "loop": "work"}


def test_a_record_of_another_library_is_a_json_line_too() -> None:
    record = logging.LogRecord("other", logging.WARNING, "file", 1, "%s left", ("one",), None)
    document = json.loads(JsonLines().format(record))
    assert (document["level"], document["event"]) == ("warning", "one left")
    assert document["logger"] == "other"


@pytest.mark.parametrize("formatter", [JsonLines(), TextLines()])
def test_the_error_of_another_library_is_one_line_without_a_traceback(
    formatter: logging.Formatter,
) -> None:
    problem = OSError("the server is gone")
    with_error = (OSError, problem, problem.__traceback__)
    record = logging.LogRecord("pool", logging.ERROR, "file", 1, "in %s", ("reset",), with_error)
    line = formatter.format(record)
    assert "\n" not in line
    assert "in reset" in line
    assert "OSError: the server is gone" in line
    assert "Traceback" not in line


def test_each_line_of_a_text_has_time_and_level(logged: Callable[[], logging.LogRecord]) -> None:
    try:
        raise ValueError("no such book")
    except ValueError:
        log.exception("step failed", loop="work")
    lines = TextLines().format(logged()).splitlines()
    assert len(lines) > 3
    assert all(re.match(r"\d\d:\d\d:\d\d ERROR   ", line) for line in lines)


def test_what_would_write_to_stderr_by_itself_is_an_event_of_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def fail() -> None:
        raise KeyError("lost")

    log_to_stderr(level=logging.INFO, as_json=True)
    logging.getLogger("sqlalchemy.pool").error("Exception during reset", exc_info=OSError("gone"))
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        logging.captureWarnings(False)
        logging.captureWarnings(True)  # pytest and the block above have put their own in its place
        warnings.warn("an old way", DeprecationWarning, stacklevel=1)
    thread = threading.Thread(target=fail, name="tsuzuki-x")
    thread.start()
    thread.join()
    events = [json.loads(line) for line in capsys.readouterr().err.splitlines()]
    reset, warning, ended = events
    assert (reset["event"], reset["error"]) == ("Exception during reset", "OSError: gone")
    assert warning["logger"] == "py.warnings"
    assert (ended["thread"], ended["error"]) == ("tsuzuki-x", "KeyError('lost')")


def test_a_text_line_has_time_level_event_and_fields(
    logged: Callable[[], logging.LogRecord],
) -> None:
    log.info("leading", epoch=3)
    _time, level, *message = TextLines().format(logged()).split()
    assert (level, " ".join(message)) == ("INFO", "leading epoch=3")
