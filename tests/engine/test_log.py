"""The engine's log: named events with fields, as ordinary records, and as text or JSON lines."""

import json
import logging
from collections.abc import Callable

import pytest

from tsuzuki.engine.log import FIELDS, JsonLines, TextLines, is_enabled_for, log


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
    log.warning("no longer leading")
    assert logged().getMessage() == "no longer leading"
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


def test_a_text_line_has_time_level_event_and_fields(
    logged: Callable[[], logging.LogRecord],
) -> None:
    log.info("leading", epoch=3)
    _time, level, *message = TextLines().format(logged()).split()
    assert (level, " ".join(message)) == ("INFO", "leading epoch=3")
