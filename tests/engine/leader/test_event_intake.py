"""Events become runs of the jobs that wait for them: all of them, in order, once."""

from typing import Any

import pytest

from support.factories import add_job, depose_and_take, spec
from support.moving_clock import NOON, MovingClock
from support.threads import at_once
from support.unreliable_database import UnreliableDatabase
from tsuzuki.engine.leader import event_intake
from tsuzuki.engine.leader.event_intake import EVENTS_MAX, EventIntake
from tsuzuki.model.errors import Unreachable
from tsuzuki.model.run import Run
from tsuzuki.model.states import Reason, RunState, Trigger
from tsuzuki.services.events import Events
from tsuzuki.store import events, jobs
from tsuzuki.store.events import Event
from tsuzuki.store.leadership import Term
from tsuzuki.store.rows import run_from
from tsuzuki.store.runs.runs import SELECT_RUNS
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.database import Database

pytestmark = pytest.mark.usefixtures("history_is_valid")


def an_intake(database: Database) -> EventIntake:
    return EventIntake(database=database)


def emit(database: Database, event_type: str = "pushed", payload: Any = None, **key: str) -> Event:
    return Events(database=database).emit(event_type, payload, **key)[0]


def all_runs(database: Database) -> list[Run]:
    with database.read() as connection:
        rows = connection.execute(SELECT_RUNS.order_by(job_runs.c.id)).mappings()
        return [run_from(row) for row in rows]


def waiting(database: Database) -> list[Event]:
    with database.read() as connection:
        return events.unprocessed(connection, limit=10_000)


def test_an_event_starts_every_job_that_waits_for_it_and_no_other(
    database: Database, clock: MovingClock, term: Term
) -> None:
    for name, on_event in [("a", "pushed"), ("b", "pushed"), ("c", "pulled"), ("d", None)]:
        add_job(database, spec(name, on_event=on_event, arguments={"for": name}, priority=3))
    event = emit(database, payload={"branch": "main"})
    clock.advance(5)
    assert an_intake(database).tick(term) == 1
    made = all_runs(database)
    assert sorted(run.job_name for run in made) == ["a", "b"]
    for run in made:
        assert (run.trigger, run.state, run.event_id) == (
            Trigger.EVENT,
            RunState.PENDING,
            event.id,
        )
        assert (run.scheduled_for, run.priority) == (NOON, 3)
        assert run.arguments == {"for": run.job_name}
    assert waiting(database) == []
    assert an_intake(database).tick(term) == 0
    assert len(all_runs(database)) == 2


def test_events_are_taken_in_the_order_in_which_they_came(
    database: Database, clock: MovingClock, term: Term
) -> None:
    add_job(database, spec(on_event="pushed"))
    emitted = []
    for number in range(20):
        emitted.append(emit(database, payload={"number": number}).id)
        if number % 3 == 0:
            clock.advance(0.5)
    an_intake(database).tick(term)
    assert [run.event_id for run in all_runs(database)] == emitted


def test_more_events_than_one_transaction_takes_wait_for_the_next(
    database: Database, term: Term
) -> None:
    add_job(database, spec(on_event="pushed"))
    with database.write() as connection:
        for _ in range(EVENTS_MAX + 5):
            events.emit(connection, event_type="pushed", payload={})
    intake = an_intake(database)
    assert [intake.tick(term), intake.tick(term), intake.tick(term)] == [EVENTS_MAX, 5, 0]
    made = all_runs(database)
    assert len({run.event_id for run in made}) == len(made) == EVENTS_MAX + 5


def test_an_event_that_no_job_waits_for_is_marked_as_processed(
    database: Database, term: Term
) -> None:
    emit(database, "unheard.of")
    assert an_intake(database).tick(term) == 1
    assert waiting(database) == []
    add_job(database, spec(on_event="unheard.of"))
    assert an_intake(database).tick(term) == 0
    assert all_runs(database) == []


def test_an_event_for_a_disabled_job_is_recorded_as_skipped(database: Database, term: Term) -> None:
    add_job(database, spec("off", on_event="pushed", enabled=False))
    add_job(database, spec("on", on_event="pushed"))
    event = emit(database)
    assert an_intake(database).tick(term) == 1
    assert {(run.job_name, run.state, run.reason, run.event_id) for run in all_runs(database)} == {
        ("off", RunState.CANCELED, Reason.JOB_DISABLED, event.id),
        ("on", RunState.PENDING, None, event.id),
    }


def test_a_removed_job_is_not_started(database: Database, term: Term) -> None:
    job_id = add_job(database, spec(on_event="pushed"))
    with database.write() as connection:
        job = jobs.get(connection, job_id)
        assert job is not None
        jobs.remove(connection, job=job)
    emit(database)
    assert an_intake(database).tick(term) == 1
    assert all_runs(database) == []


def test_a_run_is_grouped_by_what_the_event_says_before_what_the_job_says(
    database: Database, term: Term
) -> None:
    add_job(
        database,
        spec(on_event="pushed", concurrency_key="branch", arguments={"branch": "by the job"}),
    )
    payloads: list[Any] = [{"branch": "main"}, {"other": 1}, ["no", "object"], {"branch": 7}]
    for payload in payloads:
        emit(database, payload=payload)
    an_intake(database).tick(term)
    keys = [run.concurrency_key for run in all_runs(database)]
    assert keys == ["main", "by the job", "by the job", "7"]


@pytest.mark.parametrize("fault", ["lost reply", "crash before commit"])
def test_taking_in_again_after_a_fault_starts_each_job_once(
    database: Database, term: Term, fault: str
) -> None:
    for name in ("a", "b"):
        add_job(database, spec(name, on_event="pushed"))
    emit(database)
    unreliable = UnreliableDatabase(database)
    unreliable.replies_to_lose = int(fault == "lost reply")
    unreliable.crash_before_commit = fault != "lost reply"
    intake = an_intake(unreliable)
    with pytest.raises(Unreachable):
        intake.tick(term)
    seen_again = intake.tick(term)
    assert seen_again == (0 if fault == "lost reply" else 1)
    assert sorted(run.job_name for run in all_runs(database)) == ["a", "b"]
    assert waiting(database) == []


def test_a_deposed_intake_neither_starts_nor_marks_anything(database: Database, term: Term) -> None:
    add_job(database, spec(on_event="pushed"))
    event = emit(database)
    new_term = depose_and_take(database)
    assert an_intake(database).tick(term) == 0
    assert all_runs(database) == []
    assert [left.id for left in waiting(database)] == [event.id]
    assert an_intake(database).tick(new_term) == 1


def test_a_new_leader_between_the_read_and_the_write_leaves_one_run_per_job(
    database: Database, term: Term
) -> None:
    add_job(database, spec(on_event="pushed"))
    emit(database)

    class OvertakenDatabase(UnreliableDatabase):
        def write(self) -> Any:
            assert an_intake(database).tick(depose_and_take(database)) == 1
            return super().write()

    assert an_intake(OvertakenDatabase(database)).tick(term) == 0
    assert len(all_runs(database)) == 1


def test_an_event_emitted_ten_times_at_once_with_one_key_makes_one_run(
    database: Database, term: Term
) -> None:
    add_job(database, spec(on_event="pushed"))
    service = Events(database=database)
    answers = at_once(10, lambda _: service.emit("pushed", {"n": 1}, dedupe_key="delivery-1"))
    assert sum(is_new for _, is_new in answers) == 1
    assert len({event.id for event, _ in answers}) == 1
    assert an_intake(database).tick(term) == 1
    assert an_intake(database).tick(term) == 0
    assert len(all_runs(database)) == 1
    late, is_new = service.emit("pushed", {"n": 1}, dedupe_key="delivery-1")
    assert not is_new
    assert late.processed_at is not None
    assert an_intake(database).tick(term) == 0


def test_a_transaction_creates_few_runs_however_many_jobs_subscribe(
    database: Database, term: Term, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(event_intake, "RUNS_MAX", 4)
    for number in range(3):
        add_job(database, spec(f"job-{number}", on_event="pushed"))
    for _ in range(3):
        emit(database)
    intake = an_intake(database)
    assert [intake.tick(term) for _ in range(4)] == [1, 1, 1, 0]
    assert len(all_runs(database)) == 9
