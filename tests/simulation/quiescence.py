"""Quiescence: without faults every run ends, and everything that was confirmed is stored."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

from simulation.invariants import CHANGES_SQL, steps_of
from simulation.jobs import JOBS
from simulation.violations import InvariantViolated
from support.moving_clock import NOON
from tsuzuki.model.losses import Losses
from tsuzuki.model.retry import decide_retry
from tsuzuki.model.schedule import Schedule
from tsuzuki.model.states import Reason, RunState
from tsuzuki.store.sql.stored_values import to_text

if TYPE_CHECKING:
    from simulation.world import World

QUIESCE_SECONDS = 180.0
"""Generous: it costs nothing if everything ends sooner. An event that came while the database's clock was ahead is
due when that time comes again, and a few steps ahead add up to more than a minute."""

CHECK_INTERVAL_SECONDS = 1.0

LATE_SECONDS = 4.0
"""A tick may wait so long for the leader's next poll."""

LOSSES_MAX = 2
"""The lowest value of `max_orphans` that an operator sets."""

LEADERLESS_SECONDS = 25.0
"""Longer than any lease and any poll interval of a candidate together."""


def check_quiescence(world: "World") -> None:
    if not _wait_until(world, lambda: _has_leader(world), LEADERLESS_SECONDS):
        raise InvariantViolated("there is no leader")
    _correct_database_clock(world)
    if not _wait_until(world, lambda: _ticks_are_planned(world)):
        raise InvariantViolated("ticks that are due are not planned")
    _remove_schedules(world)
    if not _wait_until(world, lambda: not list(_unfinished(world))):
        raise InvariantViolated(f"not everything ended: {', '.join(_unfinished(world))}")
    world.log("quiescent")
    continuations = dict(
        world.store.raw.execute("SELECT is_confirmed, count(*) FROM sim_continuations GROUP BY 1")
    )
    world.coverage["a worker asked to go on"] += continuations.get(0, 0)
    world.coverage["a run was confirmed"] += continuations.get(1, 0)
    _check_history(world)
    for job_id, schedule, planned_until in _schedules(world):
        _check_ticks(world, job_id, schedule, planned_until)
    _check_confirmed(world)
    _check_retries(world)


def _wait_until(
    world: "World", is_so: Callable[[], bool], seconds: float = QUIESCE_SECONDS
) -> bool:
    end = world.scheduler.now + seconds
    while not is_so():
        if world.scheduler.now >= end:
            return False
        world.faults.restart_ended(at_once=True)
        world.scheduler.run_until(lambda: False, world.scheduler.now + CHECK_INTERVAL_SECONDS)
    return True


def _has_leader(world: "World") -> bool:
    return any(not node.is_dead and node.engine.lease.term is not None for node in world.nodes)


def _correct_database_clock(world: "World") -> None:
    """Otherwise runs that were due when the clock was set back would wait until that time comes again."""
    behind = -world.database_clock.ahead_seconds
    if behind > LATE_SECONDS:
        world.log(f"the database's clock is corrected by {behind:.0f} s")
        world.database_clock.step(behind)


def _schedules(world: "World") -> Iterator[tuple[int, Schedule, str]]:
    """Each scheduled job: its id, its schedule, and until when it is planned."""
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


def _remove_schedules(world: "World") -> None:
    """Otherwise new runs would never end. Ticks planned until now are still checked."""
    world.store.raw.execute(
        "UPDATE job_definitions SET schedule = NULL, version = version + 1 WHERE schedule IS NOT NULL"
    )


def _unfinished(world: "World") -> Iterator[str]:
    """What has not ended yet."""
    for run_id, run in world.invariants.runs.items():
        if not run.state.is_final:
            yield f"run {run_id} is {run.state}"
    for node in world.nodes:
        if not node.is_dead and node.engine.worker.running:
            yield f"{node.name} still executes"
        elif node.is_wanted and not node.takes_work:
            yield f"{node.name} accepts no runs, and was not asked to stop"
    events = "SELECT id FROM events WHERE processed_at IS NULL"
    yield from (f"event {row[0]} waits" for row in world.store.raw.execute(events))


def _check_history(world: "World") -> None:
    raw = world.store.raw
    rows = raw.execute("SELECT id, state, version FROM job_runs").fetchall()
    seen = {run_id: (run.state.value, run.version) for run_id, run in world.invariants.runs.items()}
    if {run_id: (state, version) for run_id, state, version in rows} != seen:
        raise InvariantViolated("the runs differ from their recorded changes")
    history = (
        "SELECT run_id, version, from_state, to_state, actor, actor_id FROM job_run_transitions"
    )
    changes = {
        (run_id, version, before, state, actor, actor_id)
        for row in raw.execute(CHANGES_SQL, (0,))
        if row[2] is not None
        for _, run_id, before, state, _, version, actor, actor_id, *_ in steps_of(row)
    }
    if set(raw.execute(history)) != changes:
        raise InvariantViolated("the history differs from the recorded changes")


def _check_ticks(world: "World", job_id: int, schedule: Schedule, planned_until: str) -> None:
    """Each tick is there once, as a run or as a recorded skip, as far as the job is planned."""
    due = list(_ticks(schedule, NOON, planned_until))
    covered: list[str] = []
    for first, count, last in world.store.raw.execute(
        "SELECT scheduled_for, covers_ticks, covers_until FROM job_runs"
        " WHERE job_definition_id = ? AND trigger = 'time' ORDER BY scheduled_for",
        (job_id,),
    ):
        ticks = [tick for tick in due if first <= tick <= (last or first)]
        if len(ticks) != count:
            raise InvariantViolated(
                f"job {job_id}: {first} stands for {count} ticks, found {ticks}"
            )
        covered += ticks
    if covered != due:
        raise InvariantViolated(f"job {job_id}: ticks {sorted(set(due) ^ set(covered))} are wrong")


def _ticks(schedule: Schedule, after: datetime, until: str) -> Iterator[str]:
    while to_text(after := schedule.next_after(after)) <= until:
        yield to_text(after)


def _check_confirmed(world: "World") -> None:
    raw, ledger, runs = world.store.raw, world.ledger, world.invariants.runs
    for run_id, job in ledger.runs.items():
        if run_id not in runs or JOBS[runs[run_id].job_id - 1].name != job:
            raise InvariantViolated(f"run {run_id} of {job} was confirmed and is not stored")
    for run_id in ledger.canceled:
        if runs[run_id].state is not RunState.CANCELED:
            raise InvariantViolated(f"run {run_id} was canceled and is {runs[run_id].state}")
    retries = dict(raw.execute("SELECT retry_of, id FROM job_runs WHERE retry_of IS NOT NULL"))
    if not ledger.retries.items() <= retries.items():
        raise InvariantViolated("a retry was confirmed to an operator and is not stored")
    rows = {row[0] for row in raw.execute("SELECT id FROM sim_rows")}
    if not ledger.rows <= rows:
        raise InvariantViolated("a row was confirmed to a handler and is not stored")
    listeners = sum(spec.on_event is not None for spec in JOBS)
    started = dict(
        raw.execute(
            "SELECT event_id, count(*) FROM job_runs WHERE trigger = 'event' GROUP BY event_id"
        )
    )
    for event_id in ledger.events:
        if started.get(event_id) != listeners:
            raise InvariantViolated(f"event {event_id} started {started.get(event_id)} runs")


def _check_retries(world: "World") -> None:
    retried = {row[0] for row in world.store.raw.execute("SELECT retry_of FROM job_runs")}
    for run_id, job_id, state, reason, retries_used, counted, free in world.store.raw.execute(
        "SELECT id, job_definition_id, state, reason, retries_used, losses, losses_free"
        " FROM job_runs WHERE state IN ('FAILED', 'TIMED_OUT')"
    ):
        retry = decide_retry(
            JOBS[job_id - 1].retry,
            state=RunState(state),
            reason=Reason(reason),
            retries_used=retries_used,
            losses=Losses(counted=counted, free=free),
            losses_max=LOSSES_MAX,
            random=Random(0),
        )
        if retry is not None and run_id not in retried:
            raise InvariantViolated(f"run {run_id} ended as {state} ({reason}) and was not retried")
