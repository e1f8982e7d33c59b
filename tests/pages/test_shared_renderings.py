"""One rendering for many viewers."""

from datetime import UTC, datetime

import pytest
from fastapi import Response

from tsuzuki.model.access import Principal, Role
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.errors import NotFound
from tsuzuki.web.pages.links import PageLink
from tsuzuki.web.pages.preferences import Preferences
from tsuzuki.web.pages.shared import AGE_HEADER, SharedRenderings
from tsuzuki.web.pages.viewer import Viewer

NOW = datetime(2026, 11, 17, tzinfo=UTC)


def viewer(actor: str, role: Role = Role.VIEWER, language: str = "en") -> Viewer:
    return Viewer(
        principal=Principal(actor=actor, role=role),
        preferences=Preferences(),
        language=language,
        now=NOW,
        origin="http://localhost",
        link=PageLink(path="/runs"),
        flash=None,
        is_fragment=True,
        accepts_gzip=False,
        menu=(),
        rights={},
    )


def test_a_page_is_rendered_once_a_second_for_those_who_may_see_the_same() -> None:
    clock = ManualClock(NOW)
    shared, made = SharedRenderings(clock), []

    def render() -> Response:
        made.append(1)
        return Response(f"rendering {len(made)}", headers={"Content-Language": "en"})

    first = shared.answer(viewer("ada"), render)
    clock.advance(0.4)
    second = shared.answer(viewer("bob"), render)
    assert (first.body, first.headers[AGE_HEADER]) == (b"rendering 1", "0")
    assert (second.body, second.headers[AGE_HEADER]) == (b"rendering 1", "400")
    assert second.headers["content-language"] == "en"
    assert shared.answer(viewer("eve", Role.ADMIN), render).body == b"rendering 2"
    assert shared.answer(viewer("ada", language="ja"), render).body == b"rendering 3"
    clock.advance(0.7)
    assert shared.answer(viewer("ada"), render).body == b"rendering 4"


def test_what_cannot_be_rendered_is_tried_again() -> None:
    clock = ManualClock(NOW)
    shared = SharedRenderings(clock)
    shared.answer(viewer("ada"), lambda: Response("old"))
    clock.advance(2)

    def fail() -> Response:
        raise NotFound("there is no such run")

    with pytest.raises(NotFound):
        shared.answer(viewer("ada"), fail)
    assert shared.answer(viewer("ada"), lambda: Response("now")).body == b"now"
