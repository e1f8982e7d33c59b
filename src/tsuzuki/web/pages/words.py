"""The words of the page for what the engine knows by codes, each with its icon and its tone."""

from types import MappingProxyType
from typing import NamedTuple

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
        Trigger.MANUAL: message("by hand"),
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
        Reason.HANDLER_FAILED: message("the handler failed"),
        Reason.HANDLER_UNKNOWN: message("the handler is unknown"),
        Reason.CRASHED: message("its process crashed"),
        Reason.MEMORY_LIMIT: message("it needed more memory than its limit"),
        Reason.ARGUMENTS_INVALID: message("the arguments are invalid"),
        Reason.TIMEOUT: message("it ran longer than its timeout"),
        Reason.WORKER_LOST: message("its worker was lost"),
        Reason.WORKER_SILENT: message("its worker fell silent"),
        Reason.WORKER_SHUTDOWN: message("its worker shut down"),
        Reason.NOT_CONFIRMED: message("its worker was not confirmed"),
        Reason.ORPHAN_LIMIT: message("it was orphaned too often"),
        Reason.LATE: message("it was too late"),
        Reason.OVERLAP: message("an earlier run was still live"),
        Reason.REPLACED: message("a newer run replaced it"),
        Reason.OPERATOR: message("an operator decided so"),
        Reason.JOB_DELETED: message("its job was removed"),
        Reason.SCHEDULE_CHANGED: message("its schedule was changed"),
        Reason.JOB_DISABLED: message("its job was disabled"),
    }
)

CAUSES = MappingProxyType(
    {
        Cause.ENDED: Word(message("It has ended"), "succeeded", "quiet"),
        Cause.RUNNING: Word(message("It is running"), "running", "busy"),
        Cause.ASSIGNED: Word(message("It is assigned and starts next"), "assigned", "busy"),
        Cause.NOT_DUE: Word(message("It is not due yet"), "pending", "wait"),
        Cause.WAITING_FOR_RETRY: Word(message("It waits for its retry"), "retry", "wait"),
        Cause.PAUSED: Word(message("Its job is switched off"), "paused", "warn"),
        Cause.JOB_REMOVED: Word(message("Its job was removed"), "canceled", "bad"),
        Cause.JOB_LIMIT: Word(message("Its job is at its limit"), "limit", "warn"),
        Cause.KEY_LIMIT: Word(message("Its key is at its limit"), "limit", "warn"),
        Cause.DATABASE_LOCKED: Word(message("The database is locked"), "failed", "bad"),
        Cause.NO_LEADER: Word(message("No process leads"), "failed", "bad"),
        Cause.NO_WORKER: Word(message("No worker is attached"), "failed", "bad"),
        Cause.NO_TAGS: Word(message("No worker has its tags"), "failed", "bad"),
        Cause.NO_HANDLER: Word(message("No worker can execute it"), "failed", "bad"),
        Cause.CAPACITY: Word(message("Every slot is taken"), "limit", "warn"),
        Cause.WORKER_SILENT: Word(message("Its worker is silent"), "failed", "bad"),
        Cause.CANCEL_REQUESTED: Word(message("Cancel requested"), "canceled", "wait"),
        Cause.CONFIRMING: Word(message("Its worker asks to be confirmed"), "pending", "warn"),
        Cause.NEXT: Word(message("Nothing is in its way: it is next"), "succeeded", "good"),
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
        BulkResult.ENDED_BEFORE: Word(message("had ended before"), "succeeded", "quiet"),
        BulkResult.RETRIED_BEFORE: Word(message("was retried before"), "retry", "quiet"),
    }
)

REFUSALS = MappingProxyType(
    {
        400: message("This request cannot be understood"),
        401: message("Sign in first"),
        403: message("This is not permitted"),
        404: message("There is nothing here"),
        405: message("This cannot be done here"),
        409: message("This is not possible now"),
        412: message("It was changed meanwhile"),
        413: message("This is too large"),
        422: message("Something in the request is wrong"),
        429: message("Too many attempts"),
        500: message("Something broke on our side"),
        503: message("The database cannot be reached"),
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
}
