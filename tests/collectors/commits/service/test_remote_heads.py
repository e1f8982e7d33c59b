"""Remote heads: each target beside where its source is now; one that fails says so for itself alone."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from support.git_histories import straight
from support.threads import TIMEOUT_SECONDS, in_background
from support.web_client import served_application
from tsuzuki.collectors.commits.service import CommitsService
from tsuzuki.collectors.commits.service import remote_heads as module
from tsuzuki.collectors.commits.service.remote_heads import PlannedOutcome, RemoteHead


@pytest.fixture
def histories(tmp_path: Path) -> list[Path]:
    folders = [tmp_path / f"{name}.git" for name in ("first", "second", "third")]
    for folder in folders:
        straight(folder, 3)
    return folders


def by_project(found: list[RemoteHead]) -> dict[str, RemoteHead]:
    return {Path(head.project).stem: head for head in found}


def test_each_target_tells_what_a_collection_would_find(
    tmp_path: Path, histories: list[Path]
) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    with served_application(workspace) as served:
        service: CommitsService = served.application.service("commits")
        for folder in histories:
            service.commits.add_target(str(folder), "main", base=workspace)
        found = by_project(service.commits.remote_heads(asked_max=10))
        assert {head.outcome for head in found.values()} == {PlannedOutcome.NEW}
        assert {len(head.remote or "") for head in found.values()} == {40}
        started = service.collections.start()
        served.application.local_engine.start()
        served.application.runs.wait(started.job_run_id, timeout_seconds=60)
        histories[2].rename(tmp_path / "gone.git")
        found = by_project(service.commits.remote_heads(asked_max=10))
        assert (found["first"].outcome, found["first"].stored) == (
            PlannedOutcome.SAME,
            found["first"].remote,
        )
        assert found["second"].outcome is PlannedOutcome.SAME
        assert found["third"].outcome is PlannedOutcome.FAILED
        assert found["third"].problem
        limited = service.commits.remote_heads(asked_max=1)
        assert [head.outcome for head in limited] == [
            PlannedOutcome.SAME,
            *[PlannedOutcome.NOT_ASKED] * 2,
        ]


def test_a_source_that_hangs_holds_up_the_others_no_longer_than_its_bound(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "ANSWER_SECONDS", 0.2)
    over = threading.Event()

    def head(path: str) -> Any:
        if path == "hangs":
            over.wait()
        return SimpleNamespace(sha="a" * 40)

    def opened(project: Any) -> Any:
        return SimpleNamespace(head=lambda _branch: head(project.path), close=lambda: None)

    def sources() -> Any:
        return SimpleNamespace(open=opened, close=lambda: None)

    projects: Any = {
        number: SimpleNamespace(project_id=number, path=path)
        for number, path in enumerate(["hangs", "answers"])
    }
    states: Any = [
        SimpleNamespace(
            target=SimpleNamespace(project_id=number, branch="main"), head=None, wanted=None
        )
        for number in projects
    ]
    asked = in_background(
        lambda: module.remote_heads(states, projects, sources=sources, asked_max=2)
    )
    try:
        hanging, answered = asked.result(TIMEOUT_SECONDS)
    finally:
        over.set()
    assert (hanging.outcome, answered.outcome) == (PlannedOutcome.FAILED, PlannedOutcome.NEW)
    assert "no response within" in str(hanging.problem)
