"""A look at the files of other processes records deaths in the database, once and only with proof."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from random import Random

import pytest

from support.factories import WORKER, take_lead
from support.statement_recorder import recorded
from tsuzuki.engine.death_watch import (
    LOOK_SECONDS,
    LOOK_SECONDS_PER_FILE,
    SOON_SECONDS,
    DeathWatch,
)
from tsuzuki.model.worker import DetachReason, WorkerState
from tsuzuki.store import leadership, workers
from tsuzuki.store.sql.database import Database

DEAD, ALIVE = "host-1-dead", "host-2-alive"


@dataclass
class StubFile:
    name: str
    is_out: bool = True
    is_free: bool = True
    is_removed: bool = False

    def is_out_of_process_table(self) -> bool:
        return self.is_out

    def is_unlocked(self) -> bool:
        return self.is_free

    def remove(self) -> None:
        self.is_removed = True


@dataclass
class StubFiles:
    files: list[StubFile]
    closed: list[set[str]] = field(default_factory=list)
    """The files that are closed during each wait."""
    waits: list[float] = field(default_factory=list)
    looks: list[Collection[str] | None] = field(default_factory=list)
    """At which files."""
    is_ending: bool = False

    def lock(self, name: str) -> None:
        raise NotImplementedError

    @contextmanager
    def look(self, names: Collection[str] | None = None) -> Iterator[Sequence[StubFile]]:
        self.looks.append(names)
        yield [
            file
            for file in self.files
            if not file.is_removed and (names is None or file.name in names)
        ]

    def wait(self, seconds: float) -> Collection[str]:
        self.waits.append(seconds)
        return self.closed.pop(0) if self.closed else ()

    def wake(self) -> None:
        self.is_ending = True

    def close(self) -> None:
        raise NotImplementedError


def a_watch(database: Database, *files: StubFile) -> DeathWatch:
    return DeathWatch(
        database=database,
        files=StubFiles([*files]),
        jitter=Random(1),
        on_call=lambda: None,
    )


def register(database: Database, worker_id: str, process_name: str) -> None:
    with database.write() as connection:
        workers.register(
            connection,
            worker_id=worker_id,
            host="host",
            pid=1,
            capacity=1,
            tags=frozenset(),
            software_version="test",
            process_name=process_name,
        )


def states(database: Database) -> dict[str, tuple[WorkerState, DetachReason | None]]:
    with database.read() as connection:
        found = workers.find(connection, with_gone=True)
    return {worker.id: (worker.state, worker.detach_reason) for worker in found}


ATTACHED = (WorkerState.ATTACHED, None)
DETACHED = (WorkerState.DETACHED, DetachReason.SILENT)


@pytest.fixture(autouse=True)
def registered(database: Database) -> None:
    """Two workers of one process, and one of another."""
    register(database, DEAD, DEAD)
    register(database, "host-1-second", DEAD)
    register(database, ALIVE, ALIVE)
    register(database, WORKER, "host-3")


def test_the_workers_of_a_dead_process_are_detached_and_its_file_is_removed(
    database: Database,
) -> None:
    dead = StubFile(DEAD)
    assert a_watch(database, dead, StubFile(ALIVE, is_out=False, is_free=False)).tick() == [DEAD]
    assert states(database) == {
        DEAD: DETACHED,
        "host-1-second": DETACHED,
        ALIVE: ATTACHED,
        WORKER: ATTACHED,
    }
    assert dead.is_removed


@pytest.mark.parametrize(("is_out", "is_free"), [(True, False), (False, True), (False, False)])
def test_one_of_both_is_no_proof(database: Database, is_out: bool, is_free: bool) -> None:
    file = StubFile(DEAD, is_out=is_out, is_free=is_free)
    with recorded(database) as sent:
        assert a_watch(database, file).tick() == []
    assert list(sent) == []
    assert not file.is_removed


def test_the_lease_of_a_dead_leader_is_free_and_its_term_is_over(database: Database) -> None:
    with database.statement() as connection:
        term = leadership.take(connection, holder=DEAD, lease_seconds=600.0)
    assert term is not None
    a_watch(database, StubFile(DEAD)).tick()
    with database.statement() as connection:
        assert not leadership.renew(connection, term=term, lease_seconds=600.0)
        next_term = leadership.take(connection, holder=ALIVE, lease_seconds=600.0)
    assert next_term is not None
    assert next_term.epoch == term.epoch + 1


def test_the_lease_of_another_leader_stays(database: Database) -> None:
    term = take_lead(database)
    a_watch(database, StubFile(DEAD)).tick()
    with database.statement() as connection:
        assert leadership.renew(connection, term=term, lease_seconds=600.0)


def test_a_file_stays_if_its_death_could_not_be_recorded(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_arguments: object) -> None:
        raise ConnectionError

    dead = StubFile(DEAD)
    watch = a_watch(database, dead)
    with monkeypatch.context() as patched:
        patched.setattr(leadership, "release_dead", fail)
        with pytest.raises(ConnectionError):
            watch.tick()
    assert not dead.is_removed
    assert states(database)[DEAD] == ATTACHED
    assert watch.tick() == [DEAD]


def test_after_a_file_was_closed_it_looks_again_soon_and_then_seldom(database: Database) -> None:
    calls: list[None] = []
    files = StubFiles([], [set(), {DEAD}])
    watch = DeathWatch(
        database=database, files=files, jitter=Random(1), on_call=lambda: calls.append(None)
    )
    pauses = [watch.step() for _ in range(5)]
    first, *others = SOON_SECONDS
    assert pauses == [0.0, first, 0.0, 0.0, 0.0]
    seldom = [files.waits[0], files.waits[1], files.waits[-1]]
    assert all(wait >= LOOK_SECONDS * 0.8 for wait in seldom)
    assert files.waits[2:-1] == others
    assert len(calls) == len(SOON_SECONDS)
    assert [names and set(names) for names in files.looks] == [None, None, *[{DEAD}] * 3]


def test_the_larger_the_fleet_the_less_often_each_process_looks(database: Database) -> None:
    files = StubFiles([StubFile(f"host-{n}", is_out=False, is_free=False) for n in range(200)])
    watch = DeathWatch(database=database, files=files, jitter=Random(1), on_call=lambda: None)
    watch.step()
    assert files.waits[0] >= LOOK_SECONDS_PER_FILE * 200 * 0.8
