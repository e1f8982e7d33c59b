"""The words of the page for what the engine knows by codes, each with its icon and its tone."""

from types import MappingProxyType
from typing import NamedTuple

from tsuzuki.model.access import Role
from tsuzuki.model.bulk import BulkResult, BulkState, BulkVerb
from tsuzuki.model.states import Actor, Outcome, Reason, RunState, Trigger
from tsuzuki.services.explain import Cause
from tsuzuki.web.pages.language import message


class Word(NamedTuple):
    """`tone` is a colour by its meaning: good, bad, busy, wait, quiet."""

    text: str
    icon: str
    tone: str


STATES = MappingProxyType(
    {
        RunState.PENDING: Word(message("Pending"), "pending", "wait"),
        RunState.ASSIGNED: Word(message("Assigned"), "assigned", "wait"),
        RunState.RUNNING: Word(message("Running"), "running", "busy"),
        RunState.ORPHANED: Word(message("Orphaned"), "orphaned", "warn"),
        RunState.SUCCEEDED: Word(message("Succeeded"), "succeeded", "good"),
        RunState.FAILED: Word(message("Failed"), "failed", "bad"),
        RunState.TIMED_OUT: Word(message("Timed out"), "timed-out", "bad"),
        RunState.CANCELED: Word(message("Canceled"), "canceled", "quiet"),
    }
)

OUTCOMES = MappingProxyType(
    {
        **{outcome: STATES[outcome.state] for outcome in Outcome},
        Outcome.SKIPPED: Word(message("Skipped"), "skipped", "quiet"),
    }
)
"""How runs ended: a skipped run is stored as CANCELED, and is not called so."""

TRIGGERS = MappingProxyType(
    {
        Trigger.TIME: message("schedule"),
        Trigger.EVENT: message("event"),
        Trigger.MANUAL: message("manual"),
        Trigger.RETRY: message("retry"),
    }
)

ACTORS = MappingProxyType(
    {
        Actor.LEADER: message("leader"),
        Actor.WORKER: message("worker"),
        Actor.OPERATOR: message("operator"),
    }
)

REASONS = MappingProxyType(
    {
        Reason.HANDLER_FAILED: message("handler failed"),
        Reason.HANDLER_UNKNOWN: message("unknown handler"),
        Reason.CRASHED: message("process crashed"),
        Reason.MEMORY_LIMIT: message("memory limit exceeded"),
        Reason.ARGUMENTS_INVALID: message("invalid arguments"),
        Reason.TIMEOUT: message("timed out"),
        Reason.WORKER_LOST: message("worker lost"),
        Reason.WORKER_SILENT: message("worker not responding"),
        Reason.WORKER_SHUTDOWN: message("worker shut down"),
        Reason.NOT_CONFIRMED: message("worker not confirmed in time"),
        Reason.ORPHAN_LIMIT: message("orphaned too many times"),
        Reason.LATE: message("too late to start"),
        Reason.OVERLAP: message("previous run still in progress"),
        Reason.REPLACED: message("replaced by a newer run"),
        Reason.OPERATOR: message("requested by an operator"),
        Reason.JOB_DELETED: message("job deleted"),
        Reason.SCHEDULE_CHANGED: message("schedule changed"),
        Reason.JOB_DISABLED: message("job disabled"),
    }
)

CAUSES = MappingProxyType(
    {
        Cause.ENDED: Word(message("Finished"), "succeeded", "quiet"),
        Cause.RUNNING: Word(message("In progress"), "running", "busy"),
        Cause.ASSIGNED: Word(message("Assigned, starting next"), "assigned", "busy"),
        Cause.NOT_DUE: Word(message("Not due yet"), "pending", "wait"),
        Cause.WAITING_FOR_RETRY: Word(message("Waiting to be retried"), "retry", "wait"),
        Cause.PAUSED: Word(message("Job is disabled"), "paused", "warn"),
        Cause.JOB_REMOVED: Word(message("Job was deleted"), "canceled", "bad"),
        Cause.JOB_LIMIT: Word(message("Job concurrency limit reached"), "limit", "warn"),
        Cause.KEY_LIMIT: Word(message("Concurrency key limit reached"), "limit", "warn"),
        Cause.DATABASE_LOCKED: Word(message("Database is locked"), "failed", "bad"),
        Cause.NO_LEADER: Word(message("No leader"), "failed", "bad"),
        Cause.NO_WORKER: Word(message("No workers attached"), "failed", "bad"),
        Cause.NO_TAGS: Word(message("No worker has the required tags"), "failed", "bad"),
        Cause.NO_HANDLER: Word(message("No worker supports this handler"), "failed", "bad"),
        Cause.CAPACITY: Word(message("All slots are in use"), "limit", "warn"),
        Cause.WORKER_SILENT: Word(message("Worker is not responding"), "failed", "bad"),
        Cause.CANCEL_REQUESTED: Word(message("Cancel requested"), "canceled", "wait"),
        Cause.CONFIRMING: Word(message("Worker is awaiting confirmation"), "pending", "warn"),
        Cause.NEXT: Word(message("Ready, next to be assigned"), "succeeded", "good"),
    }
)

BULK_STATES = MappingProxyType(
    {
        BulkState.PREVIEWED: Word(message("Preview"), "pending", "wait"),
        BulkState.CONFIRMED: Word(message("In progress"), "running", "busy"),
        BulkState.STOPPED: Word(message("Stopped"), "canceled", "quiet"),
        BulkState.DONE: Word(message("Done"), "succeeded", "good"),
        BulkState.FAILED: Word(message("Failed"), "failed", "bad"),
    }
)

BULK_VERBS = MappingProxyType(
    {BulkVerb.CANCEL: message("Cancel runs"), BulkVerb.RETRY: message("Retry runs")}
)

BULK_RESULTS = MappingProxyType(
    {
        BulkResult.CANCELED: Word(message("canceled"), "canceled", "quiet"),
        BulkResult.REQUESTED: Word(message("cancel requested"), "canceled", "wait"),
        BulkResult.RETRIED: Word(message("retried"), "retry", "good"),
        BulkResult.ENDED_BEFORE: Word(message("already finished"), "succeeded", "quiet"),
        BulkResult.RETRIED_BEFORE: Word(message("already retried"), "retry", "quiet"),
    }
)

ROLES = MappingProxyType(
    {
        Role.VIEWER: message("viewing jobs, runs and collections"),
        Role.OPERATOR: message(
            "viewer permissions, plus starting, canceling and retrying runs, and viewing code, settings and the "
            "audit log"
        ),
        Role.ADMIN: message(
            "operator permissions, plus editing jobs and settings, and managing users"
        ),
    }
)
"""What each role permits."""

REFUSALS = MappingProxyType(
    {
        400: message("Invalid request"),
        401: message("Sign in required"),
        403: message("Not permitted"),
        404: message("Not found"),
        405: message("Not allowed here"),
        409: message("Not possible right now"),
        412: message("Changed in the meantime"),
        413: message("Too large"),
        422: message("Invalid input"),
        429: message("Too many attempts"),
        500: message("Internal server error"),
        503: message("Database unavailable"),
    }
)


def refusal_title(status: int) -> str:
    """What a status of HTTP means for the one who asked."""
    return REFUSALS.get(status, REFUSALS[500] if status >= 500 else REFUSALS[400])


WORDS = {
    "states": STATES,
    "outcomes": OUTCOMES,
    "triggers": TRIGGERS,
    "actors": ACTORS,
    "reasons": REASONS,
    "causes": CAUSES,
    "bulk_states": BULK_STATES,
    "bulk_verbs": BULK_VERBS,
    "bulk_results": BULK_RESULTS,
    "roles": ROLES,
}
