"""Remote heads: each target beside where its source is now; one that fails says so for itself alone."""

from pathlib import Path

import pytest

from support.git_histories import straight
from support.web_client import served_application
from tsuzuki.collectors.commits.service import CommitsService
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
