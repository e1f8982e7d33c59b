"""The state machine of runs: the states, the legal moves, and which actor may make them.

The table `MOVES` defines it. The store's functions, the database's triggers and the tests are all checked
against it; a move that is not in it is refused, for every actor.
"""

from enum import StrEnum


class RunState(StrEnum):
    """The state of a run. It ends exactly once: a final state is never left."""

    PENDING = "PENDING"
    """Created, and waiting for its time and a worker. The leader assigns it. A crash of any process leaves
    it as it is; the next leader finds it."""

    ASSIGNED = "ASSIGNED"
    """Assigned to one worker, not started. That worker starts it. If the worker dies first, the leader
    notices its silence and orphans the run: nothing has been executed."""

    RUNNING = "RUNNING"
    """The worker executes it. That worker ends it. If the worker dies, the leader waits until the silence is
    certain, ends the run as FAILED (`worker_lost`), and the retry rule decides."""

    ORPHANED = "ORPHANED"
    """Was assigned and handed back, or its worker fell silent before starting it. The leader assigns it again
    (`attempt + 1`), or fails it when it has been orphaned too often."""

    SUCCEEDED = "SUCCEEDED"
    """The handler returned. Final."""

    FAILED = "FAILED"
    """The handler raised, its process failed, or its worker was lost. Final: a retry is a new run that names
    this one."""

    TIMED_OUT = "TIMED_OUT"
    """It ran longer than its job's timeout and was stopped. Final; retried like a failure."""

    CANCELED = "CANCELED"
    """An operator, or a recorded rule (`late`, `overlap`, `job_disabled`), decided that it shall not run or not go
    on. Final, and never retried."""

    @property
    def is_final(self) -> bool:
        return self in FINAL_STATES


FINAL_STATES = frozenset(
    {RunState.SUCCEEDED, RunState.FAILED, RunState.TIMED_OUT, RunState.CANCELED}
)
LIVE_STATES = frozenset(RunState) - FINAL_STATES


class Actor(StrEnum):
    """The actor of a move."""

    LEADER = "leader"
    WORKER = "worker"
    OPERATOR = "operator"


class Reason(StrEnum):
    """Why a run was orphaned, or ended other than by success. Stable codes, shown to users."""

    HANDLER_FAILED = "handler_failed"
    HANDLER_UNKNOWN = "handler_unknown"
    CRASHED = "crashed"
    MEMORY_LIMIT = "memory_limit"
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
    SCHEDULE_CHANGED = "schedule_changed"
    JOB_DISABLED = "job_disabled"


SKIP_REASONS = frozenset(
    {Reason.LATE, Reason.OVERLAP, Reason.JOB_DISABLED, Reason.SCHEDULE_CHANGED}
)
"""Why a scheduled time or an event started no run. The run that records it is CANCELED, and was never assigned."""


NOT_COUNTED_REASONS = frozenset({Reason.WORKER_SHUTDOWN})
"""Why a run ended that is repeated as if it had not started: neither statistics nor failure groups count it."""


class Outcome(StrEnum):
    """How a run ended, for people: its final state, with skipped runs apart from canceled ones."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    TIMED_OUT = "timed_out"
    CANCELED = "canceled"
    SKIPPED = "skipped"

    @property
    def state(self) -> RunState:
        """The state in which a run with this outcome is stored."""
        return RunState.CANCELED if self is Outcome.SKIPPED else RunState(self.value.upper())


def outcome_of(state: RunState, reason: Reason | None) -> Outcome | None:
    """The outcome of a run; None while it has not ended."""
    if not state.is_final:
        return None
    if state is RunState.CANCELED and reason in SKIP_REASONS:
        return Outcome.SKIPPED
    return Outcome(state.value.lower())


class ContinuationState(StrEnum):
    """Whether the worker of a RUNNING run waits for confirmation that it may go on."""

    NONE = "NONE"
    """No confirmation is pending."""

    CONFIRMING = "CONFIRMING"
    """The worker does not know whether it is still attached, and has requested confirmation. Until the
    deadline it set, the leader does not fail the run; after it, the worker has stopped the run by itself."""


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
"""Every legal move, and the actors that may make it."""

MOVES_AT_ONCE: dict[tuple[RunState, RunState], frozenset[Actor]] = {
    (_S.PENDING, _S.RUNNING): _LEADER,
    (_S.ORPHANED, _S.RUNNING): _LEADER,
}
"""Two moves by way of ASSIGNED, made as one by a leader for the worker of its own process. The version grows by
two, and the history has both, each with the actor that may make it."""


def may_move(source: RunState, target: RunState, actor: Actor) -> bool:
    """Whether `actor` may move a run from `source` to `target`."""
    return actor in MOVES.get((source, target), frozenset())
