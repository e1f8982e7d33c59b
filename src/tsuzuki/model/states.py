"""The law of runs: which states there are, which moves are legal, and who may make them.

The table `MOVES` is the law. The store's functions, the database's own guards and the tests are all
held against it; whatever is not in it does not happen, whoever asks.
"""

from enum import StrEnum


class RunState(StrEnum):
    """Where a run is in its life. It only ever moves forward, and ends once."""

    PENDING = "PENDING"
    """Created and waiting for its time and a worker. The leader moves it on. A crash of anybody
    leaves it as it is; the next leader finds it."""

    ASSIGNED = "ASSIGNED"
    """Given to one worker, not yet begun. That worker moves it on. If it dies first, the leader
    sees the silence and orphans the run: nothing has been executed."""

    RUNNING = "RUNNING"
    """The worker executes it. That worker ends it. If the worker dies, the leader waits for the
    silence to be certain, ends the run as FAILED (`worker_lost`) and the retry rule decides."""

    ORPHANED = "ORPHANED"
    """Was assigned and handed back, or its worker fell silent before beginning. The leader
    assigns it again (`attempt + 1`), or fails it when it has been orphaned too often."""

    SUCCEEDED = "SUCCEEDED"
    """The handler returned. Final."""

    FAILED = "FAILED"
    """The handler raised, its process ended badly, or its worker was lost. Final: a retry is a
    new run that names this one."""

    TIMED_OUT = "TIMED_OUT"
    """It ran longer than its job allows and was stopped. Final; retried like a failure."""

    CANCELED = "CANCELED"
    """Somebody, or a recorded rule (`late`, `overlap`), decided that it shall not run (on).
    Final, and never retried."""

    @property
    def is_final(self) -> bool:
        return self in FINAL_STATES


FINAL_STATES = frozenset(
    {RunState.SUCCEEDED, RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELED}
)
LIVE_STATES = frozenset(RunState) - FINAL_STATES


class Actor(StrEnum):
    """Who makes a move."""

    LEADER = "leader"
    WORKER = "worker"
    OPERATOR = "operator"


class Reason(StrEnum):
    """Why a run was orphaned, or ended other than by success. Stable words, shown to people."""

    HANDLER_FAILED = "handler_failed"
    HANDLER_UNKNOWN = "handler_unknown"
    ARGUMENTS_INVALID = "arguments_invalid"
    TIMEOUT = "timeout"
    WORKER_LOST = "worker_lost"
    WORKER_SILENT = "worker_silent"
    WORKER_SHUTDOWN = "worker_shutdown"
    NOT_CONFIRMED = "not_confirmed"
    ORPHAN_LIMIT = "orphan_limit"
    LATE = "late"
    OVERLAP = "overlap"
    REPLACED = "replaced"
    OPERATOR = "operator"
    JOB_DELETED = "job_deleted"


class ContinuationState(StrEnum):
    """Whether a RUNNING run's worker has been confirmed to still be there."""

    NONE = "NONE"
    """Nothing in doubt."""

    CONFIRMING = "CONFIRMING"
    """The worker doubts that it is still attached and asks. Until the deadline it set, nobody
    takes the run from it; after it, the worker has stopped by itself."""


class Trigger(StrEnum):
    """What created a run."""

    TIME = "time"
    EVENT = "event"
    MANUAL = "manual"
    RETRY = "retry"


_S = RunState
_LEADER = frozenset({Actor.LEADER})
_WORKER = frozenset({Actor.WORKER})

MOVES: dict[tuple[RunState, RunState], frozenset[Actor]] = {
    (_S.PENDING, _S.ASSIGNED): _LEADER,
    (_S.PENDING, _S.CANCELED): frozenset({Actor.OPERATOR, Actor.LEADER}),
    (_S.ASSIGNED, _S.RUNNING): _WORKER,
    (_S.ASSIGNED, _S.ORPHANED): frozenset({Actor.LEADER, Actor.WORKER}),
    (_S.ASSIGNED, _S.CANCELED): frozenset({Actor.OPERATOR, Actor.WORKER, Actor.LEADER}),
    (_S.RUNNING, _S.SUCCEEDED): _WORKER,
    (_S.RUNNING, _S.FAILED): frozenset({Actor.WORKER, Actor.LEADER}),
    (_S.RUNNING, _S.TIMED_OUT): _WORKER,
    (_S.RUNNING, _S.CANCELED): frozenset({Actor.OPERATOR, Actor.WORKER, Actor.LEADER}),
    (_S.ORPHANED, _S.ASSIGNED): _LEADER,
    (_S.ORPHANED, _S.FAILED): _LEADER,
    (_S.ORPHANED, _S.CANCELED): frozenset({Actor.OPERATOR, Actor.LEADER}),
}
"""Every legal move and who may make it."""

MOVES_AT_ONCE: dict[tuple[RunState, RunState], frozenset[Actor]] = {
    (_S.PENDING, _S.RUNNING): _LEADER,
    (_S.ORPHANED, _S.RUNNING): _LEADER,
}
"""Two moves by way of ASSIGNED, made as one by a leader for the worker of its own process. The version grows by
two, and the history has both, each signed by whoever may make it."""


def may_move(source: RunState, target: RunState, actor: Actor) -> bool:
    """Whether `actor` may take a run from `source` to `target`."""
    return actor in MOVES.get((source, target), frozenset())
