"""Many processes on one PostgreSQL: one leads, all work alike, and half of them may die at once."""

import os
import signal
from collections import Counter
from pathlib import Path

import pytest

from support.daemons import eventually
from support.databases import PostgresServer, opened
from support.forked_workers import ForkedWorkers
from support.load import Load
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Reason
from tsuzuki.model.worker import WorkerState
from tsuzuki.store import leadership, workers
from tsuzuki.store.leadership import Leadership
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.database import Database

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

PIECES_EACH = 24
CONNECTIONS_EACH = 12
START_SECONDS_MAX = 400.0
"""Ends a hang: many starts take long on a busy machine."""


def attached(database: Database) -> dict[str, int]:
    """Workers that take work, with their process ids."""
    with database.read() as connection:
        return {
            worker.id: worker.pid
            for worker in workers.find(connection)
            if worker.state is WorkerState.ATTACHED
        }


def leading(database: Database) -> Leadership:
    with database.read() as connection:
        return leadership.current(connection)


def assigned_to(database: Database, *, limit: int) -> Counter[str]:
    """How many runs each worker was assigned so far."""
    with database.read() as connection:
        found = runs.find(connection, RunFilter(limit=limit))
    return Counter(run.assigned_worker_id for run in found if run.assigned_worker_id)


@pytest.mark.parametrize("count", [12, pytest.param(50, marks=pytest.mark.full)])
def test_processes_have_one_leader_share_the_work_and_lose_nothing_with_half_of_them(
    own_server: PostgresServer, tmp_path: Path, count: int
) -> None:
    pieces = count * PIECES_EACH
    own_server.allow_connections(count * CONNECTIONS_EACH)
    with opened(url := own_server.create()) as database:
        # Long enough that much is left to do when half of them die, however slow this test is.
        load = Load(database, tmp_path, seconds=0.5)
        with ForkedWorkers(url, tmp_path, count, "up", "--no-web", "--capacity", "2") as processes:
            names = eventually(
                lambda: len(all_of := attached(database)) == count and all_of,
                what="every worker to be attached",
                seconds=START_SECONDS_MAX,
            )
            assert set(names.values()) == set(processes.pids)
            before = eventually(
                lambda: (now := leading(database)).is_valid and now, what="one of them to lead"
            )
            load.submit_at_once(pieces)
            load.wait_for_ends(pieces // 3)
            shares = assigned_to(database, limit=pieces)
            assert leading(database).epoch == before.epoch
            leader_pid = names[before.holder or ""]
            killed = {leader_pid, *sorted(processes.pids)[: count // 2 - 1]}
            for pid in killed:
                os.kill(pid, signal.SIGKILL)
            every = load.settle()
            eventually(
                lambda: leading(database).epoch == before.epoch + 1, what="another one to lead"
            )
    dead = {name for name, pid in names.items() if pid in killed}
    lost = {run.assigned_worker_id for run in every if run.reason is Reason.WORKER_LOST}
    assert lost & dead
    # A quicker worker is assigned more, and on a busy machine some are slow for a while; but none
    # is forgotten and none is assigned most of it.
    fair_share = shares.total() / count
    assert min(shares[name] for name in names) >= fair_share / 2, sorted(shares.values())
    assert max(shares.values()) <= fair_share * 2, sorted(shares.values())
