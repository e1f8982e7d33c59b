"""A backup that is taken while everything runs, restored into a database of its own: the work goes on from there."""

import sqlite3
import subprocess
from collections import defaultdict
from contextlib import closing
from pathlib import Path

import pytest

from support.daemons import Daemons, eventually, started_on
from support.databases import PostgresServer, opened
from support.history_checker import check_history
from support.load import Load
from tsuzuki.model.run import Run
from tsuzuki.model.states import RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.backup import back_up
from tsuzuki.store.inspection import inspect_database
from tsuzuki.store.schema.migrate import ENGINE
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.slow

KEY = "after the backup"


def restore(copy: Path, request: pytest.FixtureRequest, dialect: str, folder: Path) -> str:
    """As the operations page tells it. Answers the URL of the restored database."""
    if dialect == "sqlite":
        target = folder / "restored.db"
        copy.rename(target)
        with closing(sqlite3.connect(target)) as connection:
            assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        return f"sqlite:///{target}"
    server: PostgresServer = request.getfixturevalue("postgres")
    url = server.create(())
    request.addfinalizer(lambda: server.drop(url))
    program = server.programs / "pg_restore"
    subprocess.run(
        [program, "--exit-on-error", "--no-owner", f"--dbname={url}", copy],
        check=True,
        capture_output=True,
    )
    return url


def chains(runs: list[Run]) -> dict[int, list[Run]]:
    """Each submitted run with its retries, in order."""
    found: dict[int, list[Run]] = defaultdict(list)
    for run in runs:
        found[run.origin_id or run.id].append(run)
    return found


def test_work_goes_on_from_a_backup_that_was_taken_under_load(
    quick_database: Database,
    daemons: Daemons,
    dialect: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    request: pytest.FixtureRequest,
) -> None:
    if dialect == "postgresql":
        server: PostgresServer = request.getfixturevalue("postgres")
        monkeypatch.setenv("PATH", str(server.programs), prepend=":")
    daemon = daemons.start("up")
    with Load(quick_database, tmp_path, seconds=0.2, pause_seconds=0.02) as load:
        load.wait_for_ends(5)
        confirmed = set(load.confirmed.values())
        back_up(quick_database, tmp_path / "backup")
    daemon.kill()

    url = restore(tmp_path / "backup", request, dialect, tmp_path)
    with opened(url) as restored:
        assert [one for one in inspect_database(restored, [ENGINE]) if not one.is_ok] == []
        before = check_history(restored)
        assert confirmed <= {run.id for run in before}
        runs = Runs(database=restored, actor="test")
        with started_on(url, tmp_path) as again:
            new = runs.submit(
                Request(job=Load.JOB, arguments={"key": KEY, "seconds": 0.0}, idempotency_key=KEY)
            )
            assert new.run_id > max(run.id for run in before)
            again.start("up")
            eventually(
                lambda: all(run.state.is_final for run in check_history(restored)),
                what="every run of the backup to end",
            )
            again.stop_all()
        after = check_history(restored)
        assert {chain[-1].state for chain in chains(after).values()} == {RunState.SUCCEEDED}
        assert [
            run for run in after if run.id in {one.id for one in before if one.state.is_final}
        ] == [run for run in before if run.state.is_final]
