"""Failure groups: listed, retried and acknowledged as one."""

import pytest

from support.factories import add_job, add_worker, bring_to, run_in_state, spec, take_lead
from support.moving_clock import MovingClock
from support.threads import at_once
from tsuzuki.model.errors import Conflict, NotFound
from tsuzuki.model.failure_signature import signature_of
from tsuzuki.model.states import RunState
from tsuzuki.services.failures import Failures, GroupPosition
from tsuzuki.services.runs import Runs
from tsuzuki.store import audit, failures, pruning
from tsuzuki.store.failures import RunFailure
from tsuzuki.store.leadership import Term
from tsuzuki.store.sql.database import Database

MISSING = signature_of("handler_failed", "order 17 is missing").id
BROKEN = signature_of("handler_failed", "it broke").id


@pytest.fixture
def service(database: Database, run_service: Runs) -> Failures:
    return Failures(database=database, runs=run_service, actor="cli:ada")


def fail(database: Database, *rows: tuple[int, str], job_id: int = 1) -> None:
    """Store failures as the engine does with the ends of runs."""
    noted = []
    for run_id, error in rows:
        group_id, text = signature_of("handler_failed", error)
        noted.append(RunFailure(run_id, group_id, job_id, text))
    with database.write() as connection:
        failures.note(connection, noted)


def test_groups_have_count_jobs_and_times_the_newest_first(
    service: Failures, database: Database, clock: MovingClock
) -> None:
    assert service.find() == []
    add_job(database, spec("a"))
    add_job(database, spec("b"))
    first_at = clock.now()
    fail(database, (1, "order 17 is missing"), (2, "it broke"), (3, "order 4 is missing"))
    clock.advance(60)
    fail(database, (4, "order 99 is missing"), job_id=2)
    missing, broken = service.find()
    assert (missing.id, missing.signature) == (MISSING, "order <n> is missing")
    assert (missing.failures, missing.jobs, missing.last_run_id) == (3, 2, 4)
    assert (missing.first_failed_at, missing.last_failed_at) == (first_at, clock.now())
    assert (broken.id, broken.failures) == (BROKEN, 1)
    assert [group.id for group in service.find(since=clock.now())] == [MISSING]
    assert [group.id for group in service.find(limit=1)] == [MISSING]
    view = service.get(MISSING)
    assert (view.job_names, view.run_ids) == (("a", "b"), (4, 3, 1))
    assert view.as_dict()["is_open"] is True


def test_a_group_names_its_jobs_since_the_time_asked_for(
    service: Failures, database: Database, clock: MovingClock
) -> None:
    add_job(database, spec("a"))
    add_job(database, spec("b"))
    fail(database, (1, "it broke"))
    clock.advance(60)
    fail(database, (2, "it broke"), job_id=2)
    assert [group.job_names for group in service.find()] == [("a", "b")]
    assert [group.job_names for group in service.find(since=clock.now())] == [("b",)]


def test_a_failure_whose_retry_succeeded_needs_no_attention(
    service: Failures, database: Database, run_service: Runs, clock: MovingClock
) -> None:
    add_worker(database)
    term = take_lead(database)
    failed = run_in_state(database, RunState.FAILED, term).id
    fail(database, (failed, "it broke"))
    assert [group.id for group in service.find(unresolved=True)] == [BROKEN]
    retry = run_service.retry(failed).run_id
    assert [group.id for group in service.find(unresolved=True)] == [BROKEN]
    bring_to(database, retry, RunState.SUCCEEDED, term)
    assert service.find(unresolved=True) == []
    assert [group.id for group in service.find()] == [BROKEN]


def test_a_page_continues_after_a_group_also_among_equal_times(
    service: Failures, database: Database, clock: MovingClock
) -> None:
    fail(database, (1, "order 17 is missing"), (2, "it broke"), (3, "it is late"))
    clock.advance(60)
    fail(database, (4, "it is new"))
    groups = service.find()
    assert len({group.last_failed_at for group in groups}) == 2
    seen, after = [], None
    while found := service.find(limit=1, after=after):
        seen += found
        after = GroupPosition(found[0].last_failed_at, found[0].id)
    assert seen == groups
    assert len(seen) == 4


def test_an_acknowledged_group_is_open_again_after_another_failure(
    service: Failures, database: Database
) -> None:
    fail(database, (1, "it broke"), (2, "it broke"))
    seen = service.acknowledge(BROKEN, through=1)
    assert seen.is_open  # run 2 was not seen
    done = service.acknowledge(BROKEN)
    assert (done.is_open, done.acknowledged_by) == (False, "cli:ada")
    assert service.find() == []
    assert len(service.find(with_acknowledged=True)) == 1
    with pytest.raises(Conflict) as before:
        service.acknowledge(BROKEN)
    assert before.value.specific_code == "failures_acknowledged"
    fail(database, (3, "it broke"))
    assert service.find()[0].is_open
    with database.read() as connection:
        (entry, *_) = audit.find(connection, object_type="failure_group")
    assert (entry.actor, entry.action) == ("cli:ada", "failures.acknowledge")


def test_an_acknowledged_group_is_open_again_if_an_older_run_fails_later(
    service: Failures, database: Database, clock: MovingClock
) -> None:
    fail(database, (7, "it broke"))
    assert not service.acknowledge(BROKEN).is_open
    clock.advance(60)
    fail(database, (3, "it broke"))
    (group,) = service.find()
    assert group.is_open
    assert not service.acknowledge(BROKEN).is_open
    assert service.find() == []


def test_the_runs_of_a_group_are_retried_once(
    service: Failures, database: Database, term: Term
) -> None:
    ids = [run_in_state(database, RunState.FAILED, term).id for _ in range(3)]
    fail(database, *((run_id, "it broke") for run_id in ids))
    first = service.retry(BROKEN, limit=2)
    assert list(first.retried) == [ids[2], ids[1]]
    again = service.retry(BROKEN)
    assert list(again.retried) == [ids[0]]
    assert again.refused == {ids[2]: "run_retried", ids[1]: "run_retried"}


def test_an_unknown_group_is_told(service: Failures) -> None:
    for ask in (service.get, service.retry, service.acknowledge):
        with pytest.raises(NotFound) as unknown:
            ask("none")
        assert unknown.value.specific_code == "failure_group_unknown"


def test_failures_that_come_at_once_are_all_stored(service: Failures, database: Database) -> None:
    def store(number: int) -> None:
        words = ["order 1 is missing", "it broke", "it fell"]
        rows = [(number * 3 + n, word) for n, word in enumerate(words)]
        fail(database, *(rows if number % 2 else reversed(rows)))

    at_once(8, store)
    assert [group.failures for group in service.find()] == [8, 8, 8]


def test_a_deleted_run_leaves_its_group(service: Failures, database: Database, term: Term) -> None:
    run = run_in_state(database, RunState.FAILED, term)
    fail(database, (run.id, "it broke"))
    with database.write() as connection:
        pruning.mark(connection, term=term, run_ids=[run.id])
        assert pruning.delete_marked(connection, term=term, run_ids=[run.id]) == 1
    assert service.find() == []
    with pytest.raises(NotFound):
        service.get(BROKEN)
