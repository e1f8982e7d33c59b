"""Waiting runs go to workers: the most urgent first, to the least loaded that may, within all limits."""

from collections import Counter
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from support.factories import (
    add_job,
    add_worker,
    create_run,
    depose_and_take,
    new_run,
    read_run,
    ref,
    run_in_state,
    spec,
    take_lead,
)
from support.history_checker import check_history
from support.moving_clock import NOON, MovingClock
from support.statement_recorder import recorded
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader.assigner import BATCH_MAX, Assigner
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.job import JobSource
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.run import Run
from tsuzuki.model.states import RunState
from tsuzuki.store import jobs, workers
from tsuzuki.store.leadership import Term
from tsuzuki.store.runs import moves, runs
from tsuzuki.store.runs.moves import Reason, RunEnd
from tsuzuki.store.runs.runs import SELECT_RUNS, run_from
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database

ALLOW = ConcurrencyPolicy.ALLOW


@pytest.fixture
def term(database: Database) -> Term:
    return take_lead(database)


@pytest.fixture(autouse=True)
def lawful(database: Database) -> Iterator[None]:
    yield
    check_history(database)


def an_assigner(database: Database) -> Assigner:
    return Assigner(database=database)


def add_free_job(database: Database, name: str = "free", **changes: Any) -> int:
    """A job without a limit."""
    return add_job(database, spec(name, **{"concurrency_policy": ALLOW, **changes}))


def create_runs(database: Database, job_id: int, count: int, **changes: Any) -> list[int]:
    with database.write() as connection:
        born = runs.create(connection, [new_run(database, job_id, **changes)] * count)
    return [run_id for run_id in born if run_id is not None]


def held(database: Database) -> list[Run]:
    """What was given out, in the order of ids."""
    with database.read() as connection:
        rows = connection.execute(
            SELECT_RUNS.where(job_runs.c.state == RunState.ASSIGNED.value).order_by(job_runs.c.id)
        ).mappings()
        return [run_from(row) for row in rows]


def held_ids(database: Database) -> list[int]:
    return [run.id for run in held(database)]


def finish(database: Database, run_id: int, worker_id: str) -> None:
    with database.write() as connection:
        (begun,) = moves.start(
            connection, worker_id=worker_id, runs=[ref(database, run_id)]
        ).values()
        ending = RunEnd(run=begun.started, state=RunState.SUCCEEDED)
        assert moves.finish(connection, worker_id=worker_id, ends=[ending])


# --- to whom --------------------------------------------------------------------------------------


def test_a_due_run_is_given_to_a_worker(database: Database, clock: MovingClock, term: Term) -> None:
    add_worker(database, "w")
    run_id = create_run(database, add_free_job(database)).id
    clock.advance(3)
    assert an_assigner(database).tick(term) == 1
    run = read_run(database, run_id)
    assert (run.state, run.assigned_worker_id) == (RunState.ASSIGNED, "w")
    assert run.assigned_at == NOON + timedelta(seconds=3)
    assert (run.attempt, run.version) == (1, 2)
    assert an_assigner(database).tick(term) == 0


def test_each_run_goes_to_the_least_loaded_worker_for_its_size(
    database: Database, term: Term
) -> None:
    add_worker(database, "big", capacity=6)
    add_worker(database, "small", capacity=2)
    create_runs(database, add_free_job(database), 4)
    assert an_assigner(database).tick(term) == 4
    assert Counter(run.assigned_worker_id for run in held(database)) == {"big": 3, "small": 1}


def test_what_a_worker_already_holds_counts_as_its_load(database: Database, term: Term) -> None:
    add_worker(database, "busy", capacity=4)
    assigner = an_assigner(database)
    job_id = add_free_job(database)
    create_runs(database, job_id, 2)
    assigner.tick(term)
    add_worker(database, "idle", capacity=4)
    create_runs(database, job_id, 2)
    assigner.tick(term)
    assert Counter(run.assigned_worker_id for run in held(database)) == {"busy": 2, "idle": 2}


def test_nobody_gets_more_than_its_capacity_and_the_rest_waits(
    database: Database, term: Term
) -> None:
    add_worker(database, "a", capacity=2)
    add_worker(database, "b", capacity=1)
    add_worker(database, "none", capacity=0)
    ids = create_runs(database, add_free_job(database), 5)
    assigner = an_assigner(database)
    assert assigner.tick(term) == 3
    assert Counter(run.assigned_worker_id for run in held(database)) == {"a": 2, "b": 1}
    assert held_ids(database) == ids[:3]
    assert assigner.tick(term) == 0
    finish(database, ids[0], str(read_run(database, ids[0]).assigned_worker_id))
    assert assigner.tick(term) == 1
    assert ids[3] in held_ids(database)


@pytest.mark.parametrize("workers_there", ["nobody", "only one without room"])
def test_without_room_nothing_is_written(
    database: Database, term: Term, workers_there: str
) -> None:
    if workers_there != "nobody":
        add_worker(database, "none", capacity=0)
    run_id = create_run(database, add_free_job(database)).id
    with recorded(database) as sent:
        assert an_assigner(database).tick(term) == 0
    assert not [statement for statement in sent if "UPDATE" in statement]
    assert read_run(database, run_id).version == 1


def test_a_run_goes_only_to_a_worker_that_has_all_of_its_tags(
    database: Database, term: Term
) -> None:
    add_worker(database, "plain", capacity=100)
    add_worker(database, "gpu", tags=frozenset({"gpu"}))
    add_worker(database, "both", tags=frozenset({"gpu", "eu"}))
    wants_gpu = create_runs(database, add_free_job(database, "gpu", tags=frozenset({"gpu"})), 2)
    wants_both = create_run(database, add_free_job(database, "both", tags=frozenset({"gpu", "eu"})))
    nobody_has = create_run(database, add_free_job(database, "odd", tags=frozenset({"odd"})))
    assert an_assigner(database).tick(term) == 3
    assert {read_run(database, n).assigned_worker_id for n in wants_gpu} == {"gpu", "both"}
    assert read_run(database, wants_both.id).assigned_worker_id == "both"
    assert read_run(database, nobody_has.id).state is RunState.PENDING


@pytest.mark.parametrize("leaves", ["drain", "expel", "leave", "silence"])
def test_a_worker_that_drains_or_is_cut_off_or_gone_gets_nothing(
    database: Database, clock: MovingClock, term: Term, leaves: str
) -> None:
    add_worker(database, "leaving", capacity=100)
    clock.advance(6)
    with database.write() as connection:
        match leaves:
            case "drain":
                workers.drain(connection, ["leaving"])
            case "expel":
                workers.detach(connection, ["leaving"])
            case "leave":
                workers.deregister(connection, "leaving")
            case "silence":
                workers.detach_silent(connection, term=term, silent_after_seconds=6)
    add_worker(database, "staying", capacity=1)
    create_runs(database, add_free_job(database), 3)
    assert an_assigner(database).tick(term) == 1
    assert [run.assigned_worker_id for run in held(database)] == ["staying"]


def test_a_worker_that_drains_between_the_look_and_the_gift_gets_nothing(
    database: Database, term: Term
) -> None:
    add_worker(database, "w")
    run_id = create_run(database, add_free_job(database)).id

    class LateDatabase(UnreliableDatabase):
        def write(self) -> Any:
            with database.write() as connection:
                workers.drain(connection, ["w"])
            return super().write()

    assert an_assigner(LateDatabase(database)).tick(term) == 0
    assert read_run(database, run_id).state is RunState.PENDING


# --- in which order -------------------------------------------------------------------------------


def test_the_order_is_priority_then_time_then_age(
    database: Database, clock: MovingClock, term: Term
) -> None:
    job_id = add_free_job(database)
    earlier = NOON - timedelta(minutes=1)
    last = create_run(database, job_id, priority=-5, scheduled_for=earlier).id
    fourth = create_run(database, job_id).id
    fifth = create_run(database, job_id).id
    third = create_run(database, job_id, scheduled_for=earlier).id
    second = create_run(database, job_id, priority=9).id
    first = create_run(database, job_id, priority=9, scheduled_for=earlier).id
    assigner, given = an_assigner(database), []
    for number in range(6):
        add_worker(database, f"w{number}", capacity=1)
        assert assigner.tick(term) == 1
        given += [run_id for run_id in held_ids(database) if run_id not in given]
    assert given == [first, second, third, fourth, fifth, last]


def test_a_run_is_not_given_out_before_its_time(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_worker(database)
    soon = NOON + timedelta(seconds=10)
    run_id = create_run(database, add_free_job(database), scheduled_for=soon, priority=999).id
    assigner = an_assigner(database)
    clock.advance(9.999)
    assert assigner.tick(term) == 0
    clock.advance(0.001)
    assert assigner.tick(term) == 1
    assert held_ids(database) == [run_id]


def test_an_orphan_is_given_out_again_as_a_further_attempt(database: Database, term: Term) -> None:
    add_worker(database)
    orphan = run_in_state(database, RunState.ORPHANED, term)
    assert an_assigner(database).tick(term) == 1
    run = read_run(database, orphan.id)
    assert (run.state, run.attempt, run.orphan_count, run.reason) == (
        RunState.ASSIGNED,
        2,
        1,
        None,
    )


# --- limits ---------------------------------------------------------------------------------------


def test_a_job_never_has_more_under_way_than_it_allows(database: Database, term: Term) -> None:
    add_worker(database, "w", capacity=100)
    limited = create_runs(database, add_job(database, spec("three", max_concurrent=3)), 10)
    single = create_runs(database, add_job(database, spec("one")), 10)
    assigner = an_assigner(database)
    assert assigner.tick(term) == 4
    assert held_ids(database) == [*limited[:3], single[0]]
    assert assigner.tick(term) == 0
    finish(database, limited[1], "w")
    assert assigner.tick(term) == 1
    assert held_ids(database) == [limited[0], limited[2], limited[3], single[0]]


def test_a_key_never_has_more_under_way_than_its_job_allows(database: Database, term: Term) -> None:
    add_worker(database, "w", capacity=100)
    job_id = add_free_job(database, concurrency_key="repo", max_concurrent_per_key=2)
    ids = {key: create_runs(database, job_id, 4, concurrency_key=key) for key in ("a", "b", None)}
    assigner = an_assigner(database)
    assert assigner.tick(term) == 8
    assert held_ids(database) == [*ids["a"][:2], *ids["b"][:2], *ids[None]]
    assert assigner.tick(term) == 0
    finish(database, ids["b"][0], "w")
    assert assigner.tick(term) == 1
    assert ids["b"][2] in held_ids(database)


def test_the_same_key_of_two_jobs_is_two_keys(database: Database, term: Term) -> None:
    add_worker(database)
    for name in ("first", "second"):
        job_id = add_free_job(database, name, concurrency_key="repo", max_concurrent_per_key=1)
        create_runs(database, job_id, 2, concurrency_key="same")
    assert an_assigner(database).tick(term) == 2


def test_the_limit_of_the_job_as_it_is_now_counts(database: Database, term: Term) -> None:
    add_worker(database)
    job_id = add_job(database, spec("grows"))
    create_runs(database, job_id, 5)
    assigner = an_assigner(database)
    assert assigner.tick(term) == 1
    with database.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        jobs.change(connection, job=job, spec=spec("grows", max_concurrent=4))
    assert assigner.tick(term) == 3


@pytest.mark.parametrize("fate", ["disabled", "removed"])
def test_runs_of_a_job_that_is_off_or_removed_are_held(
    database: Database, term: Term, fate: str
) -> None:
    add_worker(database)
    job_id = add_free_job(database, "off")
    create_runs(database, job_id, 3, priority=5)
    other = create_run(database, add_free_job(database, "on")).id
    with database.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        if fate == "removed":
            jobs.remove(connection, job=job)
        else:
            jobs.change(
                connection, job=job, spec=spec("off", enabled=False, concurrency_policy=ALLOW)
            )
    assigner = an_assigner(database)
    assert assigner.tick(term) == 1
    assert held_ids(database) == [other]
    if fate == "disabled":
        with database.write() as connection:
            job = jobs.get(connection, job_id)
            assert job is not None
            jobs.change(connection, job=job, spec=spec("off", concurrency_policy=ALLOW))
        assert assigner.tick(term) == 3


# --- what is blocked hides nothing ----------------------------------------------------------------


def test_ten_thousand_runs_of_a_job_at_its_limit_do_not_hide_another(
    database: Database, term: Term
) -> None:
    add_worker(database, "w", capacity=5)
    create_runs(database, add_job(database, spec("limited")), 10_000, priority=5)
    other = create_run(database, add_free_job(database, "other")).id
    assert an_assigner(database).tick(term) == 2
    assert other in held_ids(database)


def test_a_thousand_runs_of_a_key_at_its_limit_do_not_hide_another(
    database: Database, term: Term
) -> None:
    add_worker(database, "w", capacity=5)
    job_id = add_free_job(database, concurrency_key="k", max_concurrent_per_key=1)
    create_runs(database, job_id, 1000, concurrency_key="same", priority=5)
    other = create_run(database, job_id, concurrency_key="other").id
    assert an_assigner(database).tick(term) == 2
    assert other in held_ids(database)


@pytest.mark.parametrize("why", ["off", "tags", "limit"])
def test_a_hundred_blocked_jobs_do_not_hide_another_though_one_slot_is_free(
    database: Database, term: Term, why: str
) -> None:
    add_worker(database, "full", capacity=100)
    blocked = {
        "off": {"enabled": False},
        "tags": {"tags": frozenset({"gpu"})},
        "limit": {"concurrency_policy": ConcurrencyPolicy.FORBID},
    }[why]
    assigner = an_assigner(database)
    names = [f"blocked-{n}" for n in range(100)]
    with database.write() as connection:
        for job in (spec(name, **{"concurrency_policy": ALLOW, **blocked}) for name in names):
            job_id = jobs.add(connection, job, source=JobSource.DATABASE)
            runs.create(connection, [new_run(database, job_id, priority=5)] * 2)
    assert assigner.tick(term) == (100 if why == "limit" else 0)
    add_worker(database, "free", capacity=1)
    with database.write() as connection:
        workers.drain(connection, ["full"])
    other = create_run(database, add_free_job(database, "other")).id
    assert assigner.tick(term) == 1
    assert read_run(database, other).assigned_worker_id == "free"


# --- how ------------------------------------------------------------------------------------------


def test_a_round_gives_out_everything_in_one_statement(database: Database, term: Term) -> None:
    for number in range(3):
        add_worker(database, f"w{number}", capacity=50)
    create_runs(database, add_free_job(database, "a"), 60, priority=1)
    create_runs(database, add_job(database, spec("b", max_concurrent=5)), 60)
    create_runs(database, add_free_job(database, "c"), 60)
    with recorded(database) as sent:
        assert an_assigner(database).tick(term) == 125
    assert len([s for s in sent if "UPDATE job_runs" in s]) == 1


def test_one_round_gives_out_a_bounded_number(database: Database, term: Term) -> None:
    add_worker(database, "w", capacity=BATCH_MAX * 3)
    create_runs(database, add_free_job(database), BATCH_MAX + 7)
    assigner = an_assigner(database)
    assert [assigner.tick(term) for _ in range(3)] == [BATCH_MAX, 7, 0]


def test_with_nothing_due_a_round_is_one_question(database: Database, term: Term) -> None:
    add_worker(database)
    with recorded(database) as sent:
        assert an_assigner(database).tick(term) == 0
    assert len(sent) == 1


def test_a_deposed_assigner_gives_out_nothing(database: Database, term: Term) -> None:
    add_worker(database)
    run_id = create_run(database, add_free_job(database)).id
    new_term = depose_and_take(database)
    assert an_assigner(database).tick(term) == 0
    assert read_run(database, run_id).version == 1
    assert an_assigner(database).tick(new_term) == 1


def test_of_two_leaders_that_chose_the_same_run_one_gives_it_out(
    database: Database, term: Term
) -> None:
    add_worker(database, "w", capacity=10)
    ids = create_runs(database, add_job(database, spec(max_concurrent=2)), 4)

    class OvertakenDatabase(UnreliableDatabase):
        def write(self) -> Any:
            assert an_assigner(database).tick(depose_and_take(database)) == 2
            return super().write()

    assert an_assigner(OvertakenDatabase(database)).tick(term) == 0
    assert held_ids(database) == ids[:2]


def test_a_run_canceled_between_the_look_and_the_gift_stays_canceled(
    database: Database, term: Term
) -> None:
    add_worker(database)
    canceled, other = create_runs(database, add_free_job(database), 2)

    class LateDatabase(UnreliableDatabase):
        def write(self) -> Any:
            with database.write() as connection:
                moves.cancel(connection, operator="me", runs=[ref(database, canceled)])
            return super().write()

    assert an_assigner(LateDatabase(database)).tick(term) == 1
    assert held_ids(database) == [other]
    assert read_run(database, canceled).reason is Reason.OPERATOR


def test_a_gift_whose_answer_was_lost_is_not_made_twice(database: Database, term: Term) -> None:
    add_worker(database, "w", capacity=10)
    ids = create_runs(database, add_job(database, spec(max_concurrent=2)), 4)
    unreliable = UnreliableDatabase(database)
    assigner = an_assigner(unreliable)
    unreliable.replies_to_lose = 1
    with pytest.raises(Unreachable):
        assigner.tick(term)
    assert assigner.tick(term) == 0
    assert held_ids(database) == ids[:2]
    assert {run.version for run in held(database)} == {2}
