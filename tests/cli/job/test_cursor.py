"""`tsuzuki job cursor` asks every collector that has cursors."""

from dataclasses import dataclass, replace
from typing import Any

import pytest

from support.workspace import Workspace
from tsuzuki.model.errors import NotFound
from tsuzuki.wiring import collectors
from tsuzuki.wiring.collector import Collector


@dataclass(frozen=True, kw_only=True)
class PageCursor:
    def as_dict(self) -> dict[str, Any]:
        return {
            "job": "hello",
            "start_index": 7,
            "is_exhausted": False,
            "is_current": True,
            "last_updated_at": None,
            "query_set_hash": "abc",
        }


class PageCursors:
    """Those of the job `hello`."""

    def cursors(self, job_name: str | None = None) -> list[PageCursor]:
        self._require(job_name or "hello")
        return [PageCursor()]

    def reset_cursors(self, job_name: str) -> int:
        self._require(job_name)
        return 1

    def _require(self, job_name: str) -> None:
        if job_name != "hello":
            raise NotFound(f"{job_name} is not a job of this collector")


def page_cursors(_application: object) -> PageCursors:
    return PageCursors()


@pytest.fixture(autouse=True)
def second_collector(monkeypatch: pytest.MonkeyPatch) -> None:
    """One with cursors, beside ours."""
    records = collectors.collector_records()
    pages = Collector(
        name="pages",
        summary="Collect pages.",
        kind="absent:KIND",
        handler="absent:collect",
        cursors=f"{__name__}:page_cursors",
    )
    both = replace(records, usable={**records.usable, "pages": pages})
    monkeypatch.setattr(collectors, "collector_records", lambda: both)


@pytest.mark.parametrize("words", [(), ("hello",)])
def test_the_cursors_of_every_collector_are_listed(
    workspace: Workspace, words: tuple[str, ...]
) -> None:
    assert workspace.data("job", "cursor", "ls", *words) == [PageCursor().as_dict()]


def test_the_collector_of_a_job_resets_its_cursors(workspace: Workspace) -> None:
    reset = workspace.data("job", "cursor", "reset", "hello", "--yes")
    assert reset == {"job": "hello", "reset": 1}


def test_a_job_that_no_collector_knows_is_not_found(workspace: Workspace) -> None:
    assert workspace.run("job", "cursor", "ls", "nobody").code == 4
    assert workspace.run("job", "cursor", "reset", "nobody", "--yes").code == 4
