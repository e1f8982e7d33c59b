"""IndexStats are the result of the last build that completed."""

from pathlib import Path

import pytest

from tsuzuki.collectors.codeindex.builds import builder as build_module
from tsuzuki.collectors.codeindex.builds.job import BuildJob
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE
from tsuzuki.collectors.codeindex.queries.meta import IndexStats
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.model.clock import ManualClock

from .conftest import built


def test_index_stats_move_when_a_build_completes_and_only_then(
    tree: Path, index_folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    timed = Builds(environ={FOLDER_VARIABLE: str(index_folder)}, clock=clock, workers=1)

    def build_later() -> tuple[BuildJob, object]:
        clock.advance(60)
        job = built(timed, tree)
        return job, timed.status(tree).stats

    first, stats = build_later()
    assert first.result is not None
    assert stats == IndexStats(
        total=first.result.total_indexed_symbols, last_indexed_at=first.result.last_indexed_at
    )
    unchanged, moved = build_later()
    assert unchanged.result is not None
    assert moved == IndexStats(
        total=first.result.total_indexed_symbols, last_indexed_at=unchanged.result.last_indexed_at
    )
    assert unchanged.result.last_indexed_at == unchanged.completed_at != first.completed_at
    (tree / "new.py").write_text("def new(): ...\n")
    with monkeypatch.context() as patch:
        patch.setattr(build_module.Builder, "_complete", lambda *_: 1 / 0)
        failed, kept = build_later()
    assert (failed.status, kept) == ("failed", moved)
    assert timed.status(tree).as_json()["stats"] == {
        "total": first.result.total_indexed_symbols,
        "lastIndexedAt": unchanged.completed_at,
    }
