"""When nothing bad happens any more everything becomes quiet, and what was promised is there."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

from simulation.jobs import JOBS
from simulation.laws import WITNESSED, steps_of
from simulation.reach import LawBroken
from support.moving_clock import NOON
from tsuzuki.model.retry import decide_retry
from tsuzuki.model.schedule import Schedule
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.sql.types import to_text

if TYPE_CHECKING:
    from simulation.world import World

SETTLE_SECONDS = 90.0
"""Generous: it costs nothing where everything becomes quiet sooner."""

LOOK_SECONDS = 1.0

LATE_SECONDS = 4.0
"""A tick may wait so long for the leader's next look."""

LOSSES_MAX = 2
"""The lowest that anybody sets `max_orphans` to."""


LEADERLESS_SECONDS = 25.0
"""Longer than any lease, and the deepest sleep of whoever could take it."""


def settle(world: "World") -> None:
    if not _come_to(world, lambda: _somebody_leads(world), LEADERLESS_SECONDS):
        raise LawBroken("nobody leads")
    _put_the_clock_right(world)
    if not _come_to(world, lambda: _ticks_are_planned(world)):
        raise LawBroken("ticks that are due are not planned")
    _take_the_schedules_away(world)
    if not _come_to(world, lambda: not list(_left(world))):
        raise LawBroken(f"not everything ended: {', '.join(_left(world))}")
    world.tell("everything is quiet")
    doubts = dict(
        world.store.raw.execute("SELECT is_confirmed, count(*) FROM sim_doubts GROUP BY 1")
    )
    world.reached["a worker asked to go on"] += doubts.get(0, 0)
    world.reached["a run was confirmed"] += doubts.get(1, 0)
    _the_picture_is_the_database(world)
    for job_id, schedule, planned_until in _schedules(world):
        _every_tick_is_there_once(world, job_id, schedule, planned_until)
    _what_was_confirmed_is_there(world)
    _what_deserved_a_retry_had_one(world)


def _come_to(world: "World", is_so: Callable[[], bool], seconds: float = SETTLE_SECONDS) -> bool:
    end = world.turns.now + seconds
    while not is_so():
        if world.turns.now >= end:
            return False
        world.fate.replace_the_ended(at_once=True)
        world.turns.run_until(lambda: False, world.turns.now + LOOK_SECONDS)
    return True


def _somebody_leads(world: "World") -> bool:
    return any(not node.is_dead and node.engine.lease.term is not None for node in world.nodes)


def _put_the_clock_right(world: "World") -> None:
    """What was to be done at once when the clock was put back waits until it is that time again."""
    behind = -world.database_clock.ahead_seconds
    if behind > LATE_SECONDS:
        world.tell(f"the database's clock is put right, by {behind:.0f} s")
        world.database_clock.step(behind)


def _schedules(world: "World") -> Iterator[tuple[int, Schedule, str]]:
    """What is to happen when: each job with its schedule, and until when it is planned."""
    for job_id in world.scheduled:
        schedule = JOBS[job_id - 1].schedule
        (planned_until,) = world.store.raw.execute(
            "SELECT planned_until FROM job_definitions WHERE id = ?", (job_id,)
        ).fetchone()
        if schedule is not None:
            yield job_id, schedule, planned_until


def _ticks_are_planned(world: "World") -> bool:
    overdue = world.database_clock.now() - timedelta(seconds=LATE_SECONDS)
    return all(
        schedule.next_after(datetime.fromisoformat(planned_until)) > overdue
        for _, schedule, planned_until in _schedules(world)
    )


def _take_the_schedules_away(world: "World") -> None:
    """Or there would be no end of new runs. What was planned until now is still asked for."""
    world.store.raw.execute(
        "UPDATE job_definitions SET schedule = NULL, version = version + 1 WHERE schedule IS NOT NULL"
    )


def _left(world: "World") -> Iterator[str]:
    """What is not quiet yet."""
    for run_id, life in world.laws.lives.items():
        if not life.state.is_final:
            yield f"run {run_id} is {life.state}"
    for node in world.nodes:
        if not node.is_dead and node.engine.worker.running:
            yield f"{node.name} still executes"
        elif node.is_wanted and not node.takes_work:
            yield f"{node.name} takes no work, and nobody sent it away"
    events = "SELECT id FROM events WHERE processed_at IS NULL"
    yield from (f"event {row[0]} waits" for row in world.store.raw.execute(events))


def _the_picture_is_the_database(world: "World") -> None:
    raw = world.store.raw
    rows = raw.execute("SELECT id, state, version FROM job_runs").fetchall()
    seen = {run_id: (life.state.value, life.version) for run_id, life in world.laws.lives.items()}
    if {run_id: (state, version) for run_id, state, version in rows} != seen:
        raise LawBroken("the runs are not as their moves have made them")
    told = "SELECT run_id, version, from_state, to_state, actor, actor_id FROM job_run_transitions"
    witnessed = {
        (run_id, version, before, state, actor, actor_id)
        for row in raw.execute(WITNESSED, (0,))
        if row[2] is not None
        for _, run_id, before, state, _, version, actor, actor_id, *_ in steps_of(row)
    }
    if set(raw.execute(told)) != witnessed:
        raise LawBroken("the history is not what happened")


def _every_tick_is_there_once(
    world: "World", job_id: int, schedule: Schedule, planned_until: str
) -> None:
    """As a run or as a recorded skip, up to the moment until which the job is planned."""
    due = list(_ticks(schedule, NOON, planned_until))
    covered: list[str] = []
    for first, count, last in world.store.raw.execute(
        "SELECT scheduled_for, covers_ticks, covers_until FROM job_runs"
        " WHERE job_definition_id = ? AND trigger = 'time' ORDER BY scheduled_for",
        (job_id,),
    ):
        ticks = [tick for tick in due if first <= tick <= (last or first)]
        if len(ticks) != count:
            raise LawBroken(f"job {job_id}: {first} stands for {count} ticks, found {ticks}")
        covered += ticks
    if covered != due:
        raise LawBroken(f"job {job_id}: ticks {sorted(set(due) ^ set(covered))} are wrong")


def _ticks(schedule: Schedule, after: datetime, until: str) -> Iterator[str]:
    while to_text(after := schedule.next_after(after)) <= until:
        yield to_text(after)


def _what_was_confirmed_is_there(world: "World") -> None:
    raw, ledger, lives = world.store.raw, world.ledger, world.laws.lives
    for run_id, job in ledger.runs.items():
        if run_id not in lives or JOBS[lives[run_id].job_id - 1].name != job:
            raise LawBroken(f"run {run_id} of {job} was confirmed and is not there")
    for run_id in ledger.canceled:
        if lives[run_id].state is not RunState.CANCELED:
            raise LawBroken(f"run {run_id} was canceled and is {lives[run_id].state}")
    repeats = dict(raw.execute("SELECT retry_of, id FROM job_runs WHERE retry_of IS NOT NULL"))
    if not ledger.repeats.items() <= repeats.items():
        raise LawBroken("a run was repeated for an operator, and it is not there")
    rows = {row[0] for row in raw.execute("SELECT id FROM sim_rows")}
    if not ledger.rows <= rows:
        raise LawBroken("a row was confirmed to a handler, and it is not there")
    listeners = sum(spec.on_event is not None for spec in JOBS)
    started = dict(
        raw.execute(
            "SELECT event_id, count(*) FROM job_runs WHERE trigger = 'event' GROUP BY event_id"
        )
    )
    for event_id in ledger.events:
        if started.get(event_id) != listeners:
            raise LawBroken(f"event {event_id} started {started.get(event_id)} runs")


def _what_deserved_a_retry_had_one(world: "World") -> None:
    repeated = {row[0] for row in world.store.raw.execute("SELECT retry_of FROM job_runs")}
    for run_id, job_id, state, reason, attempt, retries_used in world.store.raw.execute(
        "SELECT id, job_definition_id, state, reason, attempt, retries_used FROM job_runs"
        " WHERE state IN ('FAILED', 'TIMED_OUT')"
    ):
        deserved = decide_retry(
            JOBS[job_id - 1].retry,
            state=RunState(state),
            reason=Reason(reason),
            attempt=attempt,
            retries_used=retries_used,
            losses_max=LOSSES_MAX,
            random=Random(0),
        )
        if deserved is not None and run_id not in repeated:
            raise LawBroken(f"run {run_id} ended as {state} ({reason}) and was not repeated")
