"""A long backlog that is blocked: it hides nothing, keeps the order, and is passed key by key and not run by run."""

from datetime import timedelta
from typing import Any

import pytest

from support.assigning import ALLOW, add_free_job, an_assigner, assigned_ids, create_runs, finish
from support.factories import add_worker, create_run, read_run, ref, spec
from support.moving_clock import NOON, MovingClock
from support.query_plans import last_sent, ways_to
from support.statement_recorder import recorded
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader import assigner as assigner_module
from tsuzuki.engine.leader.assigner import SEARCH_INTERVAL_MAX_SECONDS
from tsuzuki.engine.leader.group_search import PAUSE_MAX_SECONDS
from tsuzuki.model.job import JobSource
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.store import jobs
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, queue, queue_groups
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("history_is_valid")

EARLIER = NOON - timedelta(hours=1)
LONG = "k" * 4000
"""Too long for an index entry of PostgreSQL."""


WALK_MAX = 1_000


@pytest.fixture(autouse=True)
def _short_walks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a backlog of a few thousand runs is a long one."""
    monkeypatch.setattr(assigner_module, "WALK_MAX", WALK_MAX)


def block_keys(database: Database, term: Term, *, keys: int = 3) -> int:
    """A job whose keys are all at their limit, each with a long backlog. Returns the job's id."""
    job_id = add_free_job(database, "keyed", concurrency_key="k", max_concurrent_per_key=1)
    add_worker(database, "holder", capacity=keys)
    for number in range(keys):
        create_run(database, job_id, concurrency_key=f"k{number}", scheduled_for=EARLIER)
    assert an_assigner(database).tick(term) == keys
    for number in range(keys):
        create_runs(
            database,
            job_id,
            WALK_MAX // keys + 1,
            concurrency_key=f"k{number}",
            scheduled_for=EARLIER,
        )
    return job_id


def test_runs_behind_a_blocked_backlog_start_in_the_order_of_the_queue(
    database: Database, term: Term
) -> None:
    keyed = block_keys(database, term)
    held = assigned_ids(database)
    free = add_free_job(database)
    limited = add_free_job(database, "limited", max_concurrent=1)
    minute = timedelta(minutes=1)
    wanted = [
        create_run(database, keyed, concurrency_key="other", priority=9).id,
        create_run(database, free, scheduled_for=EARLIER + minute).id,
        create_run(database, keyed, scheduled_for=EARLIER + 2 * minute).id,
        create_run(database, keyed, concurrency_key=LONG, scheduled_for=EARLIER + 3 * minute).id,
        create_run(database, limited, scheduled_for=EARLIER + 4 * minute).id,
        create_run(database, free, priority=-1, concurrency_key="no limit").id,
    ]
    create_run(database, keyed, concurrency_key=LONG)
    create_run(database, limited)
    create_run(database, free, priority=9, scheduled_for=NOON + minute)
    assigner, order = an_assigner(database), list[int]()
    for number in range(len(wanted)):
        add_worker(database, f"w{number}", capacity=1)
        assert assigner.tick(term) == 1
        order += [run for run in assigned_ids(database) if run not in {*held, *order}]
    assert order == wanted
    add_worker(database, "idle", capacity=5)
    assert assigner.tick(term) == 0


def test_a_key_whose_run_ended_goes_on_with_its_first_run(database: Database, term: Term) -> None:
    block_keys(database, term)
    assigner = an_assigner(database)
    assert assigner.tick(term) == 0
    held = assigned_ids(database)
    finish(database, held[1], "holder")
    assert assigner.tick(term) == 1
    (started,) = set(assigned_ids(database)) - set(held)
    assert read_run(database, started).concurrency_key == "k1"


@pytest.mark.parametrize("why", ["off", "tags", "limit"])
def test_a_blocked_backlog_of_a_job_costs_the_same_statements_however_long_it_is(
    database: Database, term: Term, why: str
) -> None:
    changes = {
        "off": {"enabled": False},
        "tags": {"tags": frozenset({"gpu"})},
        "limit": {"concurrency_policy": ConcurrencyPolicy.FORBID},
    }[why]
    job = spec("blocked", **{"concurrency_policy": ALLOW, **changes})
    with database.write() as connection:
        job_id = jobs.add(connection, job, source=JobSource.DATABASE)
    create_runs(database, job_id, 2 * WALK_MAX, priority=5)
    add_worker(database, "w", capacity=10)
    assigner = an_assigner(database)
    assert assigner.tick(term) == (1 if why == "limit" else 0)
    other = add_free_job(database, "other")
    counts = []
    for _ in range(2):
        create_runs(database, job_id, WALK_MAX, priority=5)
        wanted = create_run(database, other).id
        with recorded(database) as sent:
            assert assigner.tick(term) == 1
        assert wanted in assigned_ids(database)
        counts.append(len(sent))
    assert counts[0] >= counts[1]


def test_the_runs_that_workers_were_started_for_are_found_by_their_ids(
    live_database: Database,
) -> None:
    with live_database.read() as connection:
        with last_sent(connection) as sent:
            queue.due_among(connection, [1, 2])
        (way,) = ways_to(connection, "tsuzuki_job_runs", sent[-1])
    assert "PRIMARY KEY" in way or "tsuzuki_pk_job_runs" in way


@pytest.mark.parametrize("has_key", [True, False])
def test_groups_are_found_through_their_index_and_nothing_is_sorted_whole(
    live_database: Database, has_key: bool
) -> None:
    with live_database.read() as connection:
        with last_sent(connection) as sent:
            if has_key:
                queue_groups.due_runs_with_key(connection, jobs=[1, 2], limit=10, per_key=1)
            else:
                queue_groups.due_runs_without_key(
                    connection, limited_jobs=[1], unlimited_jobs=[2], limit=10, per_limited_job=1
                )
        table = "run" if live_database.is_sqlite else "tsuzuki_job_runs"
        ways = " ".join(ways_to(connection, table, sent[-1]))
    assert "tsuzuki_ix_job_runs_waiting_by_key" in ways
    assert ("tsuzuki_ix_job_runs_waiting_long_key" in ways) == has_key
    assert "tsuzuki_ix_job_runs_state_scheduled_for" not in ways
    assert "Seq Scan" not in ways


class SlowDatabase(UnreliableDatabase):
    """Each read takes a second."""

    def read(self) -> Any:
        assert isinstance(self.clock, MovingClock)
        self.clock.advance(1)
        return super().read()


def test_a_backlog_that_took_long_to_search_is_searched_again_when_something_may_have_changed(
    database: Database, clock: MovingClock, term: Term
) -> None:
    create_runs(database, add_free_job(database, tags=frozenset({"gpu"})), 1)
    add_worker(database, "w", capacity=10)
    assigner = an_assigner(SlowDatabase(database))
    with recorded(database) as sent:
        assert assigner.tick(term) == 0
        asked = len(sent)
        assert assigner.tick(term, expects_change=False) == 0
        assert len(sent) == asked
        clock.advance(SEARCH_INTERVAL_MAX_SECONDS)
        assigner.tick(term, expects_change=False)
        assert len(sent) > asked
    add_worker(database, "able", capacity=1, tags=frozenset({"gpu"}))
    assert assigner.tick(term) == 1


@pytest.fixture
def searches(clock: MovingClock, monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """When runs with a key were searched for: that takes a while here."""
    search, searched_at = queue_groups.due_runs_with_key, list[float]()

    def slow_search(*args: Any, **options: Any) -> Any:
        searched_at.append(clock.monotonic())
        clock.advance(0.3)
        return search(*args, **options)

    monkeypatch.setattr(queue_groups, "due_runs_with_key", slow_search)
    return searched_at


def test_a_search_that_took_long_is_postponed_and_what_it_found_is_kept(
    database: Database, clock: MovingClock, term: Term, searches: list[float]
) -> None:
    keyed = block_keys(database, term)
    held = assigned_ids(database)
    found = [create_run(database, keyed, concurrency_key=f"open {n}").id for n in range(3)]
    assigner = an_assigner(database)
    order: list[int] = []
    for number in range(2):
        add_worker(database, f"w{number}", capacity=1)
        assert assigner.tick(term) == 1
        order += [run for run in assigned_ids(database) if run not in {*held, *order}]
    assert order == found[:2]
    assert len(searches) == 1
    # A run without a key is found all the same; a key that got room waits for the next search.
    urgent = create_run(database, add_free_job(database), priority=9).id
    finish(database, held[0], "holder")
    add_worker(database, "w2", capacity=3)
    assert assigner.tick(term) == 2
    assert set(assigned_ids(database)) == {*held[1:], *found, urgent}
    left = assigner.postponed_seconds
    assert left is not None
    assert 0 < left <= PAUSE_MAX_SECONDS
    clock.advance(left)
    assert assigner.tick(term) == 1
    assert assigner.postponed_seconds is None


def test_a_postponed_search_is_made_up_for_even_if_nothing_speaks_of_the_backlog(
    database: Database, clock: MovingClock, term: Term, searches: list[float]
) -> None:
    """Else the leader would be called for it again and again, and never do it."""
    block_keys(database, term)
    add_worker(database, "w", capacity=10)
    assigner = an_assigner(database)
    assert assigner.tick(term) == 0
    assert assigner.tick(term) == 0
    left = assigner.postponed_seconds
    assert left
    clock.advance(left)
    assert assigner.tick(term, expects_change=False) == 0
    assert (assigner.postponed_seconds, len(searches)) == (None, 2)


def test_a_kept_run_that_was_canceled_is_not_assigned_and_not_tried_again(
    database: Database, term: Term, searches: list[float]
) -> None:
    keyed = block_keys(database, term)
    found = [create_run(database, keyed, concurrency_key=f"open {n}").id for n in range(3)]
    assigner = an_assigner(database)
    add_worker(database, "w0", capacity=1)
    assert assigner.tick(term) == 1
    with database.write() as connection:
        moves.cancel(connection, operator="ada", runs=[ref(database, found[1])])
    add_worker(database, "w1", capacity=1)
    assert assigner.tick(term) == 0
    assert assigner.tick(term) == 1
    assert found[2] in assigned_ids(database)
    assert found[1] not in assigned_ids(database)
    assert len(searches) == 1
