"""Checks the history of all runs after a test for violated invariants."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise

from sqlalchemy import select, text

from tsuzuki.model.run import Run, Transition, key_of_work
from tsuzuki.model.states import MOVES, Actor, RunState, Trigger
from tsuzuki.store import leadership
from tsuzuki.store.rows import TRANSITION_COLUMNS, run_from, transition_from
from tsuzuki.store.runs.runs import SELECT_RUNS
from tsuzuki.store.schema.tables import job_run_transitions
from tsuzuki.store.sql.database import Database


def check_history(database: Database) -> list[Run]:
    """Fails with every violation it finds. Answers the runs, oldest first."""
    with database.stream() as connection:
        if not database.is_sqlite:  # one snapshot: engines may still be running
            connection.execute(text("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ"))
        rows = connection.execute(SELECT_RUNS).mappings()
        runs = sorted((run_from(row) for row in rows), key=lambda run: run.id)
        moved: dict[int, list[Transition]] = defaultdict(list)
        for row in connection.execute(
            select(*(job_run_transitions.c[name] for name in TRANSITION_COLUMNS)).order_by(
                job_run_transitions.c.run_id, job_run_transitions.c.version
            )
        ).mappings():
            moved[row["run_id"]].append(transition_from(row))
        epoch = leadership.current(connection).epoch
    violations = [each for run in runs for each in _check_run(run, moved[run.id])]
    violations += _check_epochs([move for moves in moved.values() for move in moves], epoch)
    violations += _check_all(runs)
    assert not violations, "\n".join(violations)
    return runs


def _check_run(run: Run, moves: Sequence[Transition]) -> Iterator[str]:
    if [move.version for move in moves] != list(range(2, run.version + 1)):
        yield f"run {run.id}: versions {[m.version for m in moves]}, and it is at {run.version}"
    states = [RunState.PENDING, *(move.to_state for move in moves)]
    if [move.from_state for move in moves] != states[:-1] or states[-1] is not run.state:
        yield f"run {run.id}: its moves are not a chain: {states}, and it is {run.state}"
    for move in moves:
        if move.actor not in MOVES.get((move.from_state, move.to_state), frozenset()):
            yield f"run {run.id}: {move.actor} made {move.from_state} -> {move.to_state}"
    if sum(state.is_final for state in states) > 1:
        yield f"run {run.id}: it ended more than once: {states}"
    epochs = [move.epoch for move in moves if move.actor is Actor.LEADER and move.epoch]
    if epochs != sorted(epochs):
        yield f"run {run.id}: an old leader moved it after a new one: {epochs}"
    yield from _check_worker(run, moves)


def _check_worker(run: Run, moves: Sequence[Transition]) -> Iterator[str]:
    """The worker that ends a run is the one that started it, under the same epoch."""
    started = [move for move in moves if move.to_state is RunState.RUNNING]
    if len(started) > 1:
        yield f"run {run.id}: it was started {len(started)} times"
    for move in moves:
        if move.actor is Actor.WORKER and move.from_state is RunState.RUNNING:
            starter = (started[0].actor_id, started[0].epoch)
            if (move.actor_id, move.epoch) != starter:
                yield f"run {run.id}: started by {starter}, ended by {(move.actor_id, move.epoch)}"


def _check_epochs(moves: Sequence[Transition], current: int) -> Iterator[str]:
    """Terms do not overlap in time. Valid only if the database's clock never stepped."""
    led = sorted(
        (move for move in moves if move.actor is Actor.LEADER), key=lambda m: (m.at, m.epoch or 0)
    )
    for before, after in pairwise(led):
        if (before.epoch or 0) > (after.epoch or 0):
            yield f"run {after.run_id}: epoch {after.epoch} moved it after {before.epoch} had started"
    for move in led:
        if move.epoch is None or move.epoch > current:
            yield f"run {move.run_id}: moved under epoch {move.epoch}, the current is {current}"


def _check_all(runs: Sequence[Run]) -> Iterator[str]:
    by_id = {run.id: run for run in runs}
    ticks = Counter(
        (run.job_definition_id, run.scheduled_for) for run in runs if run.trigger is Trigger.TIME
    )
    yield from (f"job {job}: {n} runs of the tick {at}" for (job, at), n in ticks.items() if n > 1)
    retried = Counter(run.retry_of for run in runs if run.retry_of is not None)
    yield from (f"run {run_id}: retried {n} times" for run_id, n in retried.items() if n > 1)
    for run in runs:
        first = by_id.get(run.retry_of or 0)
        if first is None:
            continue
        if not first.state.is_final:
            yield f"run {run.id} retries run {first.id}, which is {first.state}"
        if run.origin_id != (first.origin_id or first.id):
            yield f"run {run.id}: origin {run.origin_id}, but it retries run {first.id}"
        if key_of_work(run) != key_of_work(first):
            yield f"run {run.id}: other work by its key than run {first.id}, which it retries"
