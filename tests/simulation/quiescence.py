"""Quiescence: without faults every run ends, and everything that was confirmed is stored."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from random import Random
from typing import TYPE_CHECKING

from simulation.bulk_cancels import check_audit
from simulation.invariants import CHANGES_SQL, steps_of
from simulation.jobs import JOBS
from simulation.statistics import end_the_hour, is_counted, seconds_behind
from simulation.violations import InvariantViolated
from tsuzuki.model.losses import Losses
from tsuzuki.model.retry import decide_retry
from tsuzuki.model.states import Reason, RunState
from tsuzuki.services import job_changes

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

LEADERLESS_PEACEFUL_SECONDS = 4.0
"""Without faults the holder of the lease lives: it leads, or lets another lead. Shorter than a lease."""


def check_quiescence(world: "World", *, has_acted: Callable[[], bool]) -> None:
    """`has_acted` answers whether the operator's last act has returned: it may define a job, or edit one."""
    _wait_until(world, world.write_lock.is_free.is_set)
    began_at = world.scheduler.now
    _wait_until(world, lambda: _has_leader(world) or _is_leaderless_too_long(world, began_at))
    if not _has_leader(world):
        raise InvariantViolated("there is no leader")
    if not _wait_until(world, has_acted):
        raise InvariantViolated("an operator gets no answer")
    _correct_database_clock(world)
    _enable_jobs(world)
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
    world.definitions.check_ticks()
    _check_confirmed(world)
    _check_retries(world)
    check_audit(world)
    if (reader := world.reader) and not _wait_until(world, reader.has_every_move):
        raise InvariantViolated("the stream does not deliver the last moves")
    if world.scenario.counts_hours:
        end_the_hour(world)
        if not _wait_until(world, lambda: is_counted(world)):
            raise InvariantViolated("the hourly statistics differ from what has ended")


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


def _is_leaderless_too_long(world: "World", began_at: float) -> bool:
    """Counted from when the write lock is free: while a handler holds it, no process can take the lease."""
    limit = LEADERLESS_PEACEFUL_SECONDS if world.scenario.is_peaceful else LEADERLESS_SECONDS
    return world.scheduler.now > max(began_at, world.write_lock.free_at) + limit


def _correct_database_clock(world: "World") -> None:
    """Otherwise runs that were due when the clock was set back would wait until that time comes again."""
    behind = -world.database_clock.ahead_seconds
    if world.scenario.counts_hours:
        behind = max(behind, seconds_behind(world))
    if behind > LATE_SECONDS:
        world.log(f"the database's clock is corrected by {behind:.0f} s")
        world.database_clock.step(behind)


def _ticks_are_planned(world: "World") -> bool:
    overdue = world.database_clock.now() - timedelta(seconds=LATE_SECONDS)
    return all(
        schedule.next_after(datetime.fromisoformat(planned_until)) > overdue
        for schedule, planned_until in world.definitions.scheduled()
    )


def _enable_jobs(world: "World") -> None:
    """Otherwise their runs would wait. Ticks of a job that was disabled are recorded as skipped."""
    for spec in [spec for spec in world.definitions.present() if not spec.enabled]:
        with world.store.write() as connection:
            job_changes.set_enabled(connection, spec.name, True, actor="world")
    world.invariants.read_changes()


def _remove_schedules(world: "World") -> None:
    """Otherwise new runs would never end. Ticks planned until now are still checked."""
    world.definitions.close()
    world.store.raw.execute(
        "UPDATE tsuzuki_job_definitions SET schedule = NULL, version = version + 1 WHERE schedule IS NOT NULL"
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
    events = "SELECT id FROM tsuzuki_events WHERE processed_at IS NULL"
    yield from (f"event {row[0]} waits" for row in world.store.raw.execute(events))


def _check_history(world: "World") -> None:
    raw = world.store.raw
    rows = raw.execute("SELECT id, state, version FROM tsuzuki_job_runs").fetchall()
    seen = {run_id: (run.state.value, run.version) for run_id, run in world.invariants.runs.items()}
    if {run_id: (state, version) for run_id, state, version in rows} != seen:
        raise InvariantViolated("the runs differ from their recorded changes")
    history = "SELECT run_id, version, from_state, to_state, actor, actor_id FROM tsuzuki_job_run_transitions"
    changes = {
        (run_id, version, before, state, actor, actor_id)
        for row in raw.execute(CHANGES_SQL, (0,))
        if row[2] is not None
        for _, run_id, before, state, _, version, actor, actor_id, *_ in steps_of(row)
    }
    if set(raw.execute(history)) != changes:
        raise InvariantViolated("the history differs from the recorded changes")


def _check_confirmed(world: "World") -> None:
    raw, ledger, runs = world.store.raw, world.ledger, world.invariants.runs
    for run_id, job in ledger.runs.items():
        if run_id not in runs or world.definitions.name(runs[run_id].job_id) != job:
            raise InvariantViolated(f"run {run_id} of {job} was confirmed and is not stored")
    for run_id in ledger.canceled:
        if runs[run_id].state is not RunState.CANCELED:
            raise InvariantViolated(f"run {run_id} was canceled and is {runs[run_id].state}")
    retries = dict(
        raw.execute("SELECT retry_of, id FROM tsuzuki_job_runs WHERE retry_of IS NOT NULL")
    )
    if not ledger.retries.items() <= retries.items():
        raise InvariantViolated("a retry was confirmed to an operator and is not stored")
    rows = {row[0] for row in raw.execute("SELECT id FROM sim_rows")}
    if not ledger.rows <= rows:
        raise InvariantViolated("a row was confirmed to a handler and is not stored")
    listeners = sum(spec.on_event is not None for spec in JOBS)
    started = dict(
        raw.execute(
            "SELECT event_id, count(*) FROM tsuzuki_job_runs WHERE trigger = 'event' GROUP BY event_id"
        )
    )
    for event_id in ledger.events:
        if started.get(event_id) != listeners:
            raise InvariantViolated(f"event {event_id} started {started.get(event_id)} runs")


def _check_retries(world: "World") -> None:
    """A run that ends while its cancel is requested, by an operator or by the leader, is not retried."""
    raw = world.store.raw
    retried = {row[0] for row in raw.execute("SELECT retry_of FROM tsuzuki_job_runs")}
    requested = {row[0] for row in raw.execute("SELECT run_id FROM sim_cancel_requests")}
    for run_id, job_id, state, reason, retries_used, counted, free in raw.execute(
        "SELECT id, job_definition_id, state, reason, retries_used, losses, losses_free"
        " FROM tsuzuki_job_runs WHERE state IN ('FAILED', 'TIMED_OUT')"
    ):
        retry = decide_retry(
            world.definitions.specs[job_id].retry,
            state=RunState(state),
            reason=Reason(reason),
            retries_used=retries_used,
            losses=Losses(counted=counted, free=free),
            losses_max=LOSSES_MAX,
            random=Random(0),
        )
        is_wanted = world.definitions.is_present(job_id) and run_id not in requested
        if retry is not None and is_wanted and run_id not in retried:
            raise InvariantViolated(f"run {run_id} ended as {state} ({reason}) and was not retried")
