"""What goes wrong inside is told without its details, and logged with them."""

import logging
from typing import Any, NoReturn

import pytest

from support.web_client import Client, Served
from tsuzuki.model.errors import TsuzukiError, Unreachable
from tsuzuki.web.problems import STATUSES, status_of


def test_a_bug_is_told_without_its_details_and_logged_with_them(
    served: Served,
    client: Client,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def fail(**_wanted: Any) -> NoReturn:
        raise RuntimeError("the inner secret")

    monkeypatch.setattr(served.application.audit, "find", fail)
    monkeypatch.setattr(logging.getLogger("tsuzuki"), "propagate", True)
    answer = client.get("audit")
    assert (answer.status, answer.code) == (500, "bug")
    assert b"inner secret" not in answer.body
    assert b"Traceback" not in answer.body
    assert "the inner secret" in caplog.text


def test_a_database_that_does_not_answer_is_told_with_when_to_ask_again(
    served: Served, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(**_wanted: Any) -> NoReturn:
        raise Unreachable("postgresql://u:p@h/d does not answer")

    monkeypatch.setattr(served.application.audit, "find", fail)
    answer = client.get("audit")
    assert (answer.status, answer.code) == (503, "unreachable")
    assert answer.headers["retry-after"] == "2"
    assert answer.json["detail"] == "postgresql://u:***@h/d does not answer"
    monkeypatch.setattr(served.application.workers, "lease", fail)
    ready = client.get("/readyz")
    assert (ready.status, ready.json["ready"]) == (503, False)


def test_every_error_of_the_tree_has_a_status() -> None:
    kinds = [TsuzukiError]
    while kinds:
        kind = kinds.pop()
        kinds += [k for k in kind.__subclasses__() if k.__module__ == "tsuzuki.model.errors"]
        assert kind is TsuzukiError or any(parent in STATUSES for parent in kind.__mro__[:-3])
    assert status_of(Unreachable("x")) == 503
