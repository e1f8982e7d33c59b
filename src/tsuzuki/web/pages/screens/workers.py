"""Leader and workers: the lease and past terms, each worker's load and last heartbeat; drain, detach, step down."""

from typing import Annotated, Any, ClassVar

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right
from tsuzuki.model.errors import Conflict
from tsuzuki.model.worker import DetachReason, WorkerState
from tsuzuki.services.workers import EngineStatus, WorkerView
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.workers import WorkerId, WorkerOut, WorkerQuery, worker_out
from tsuzuki.web.pages.context import Page
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.pages.words import Word
from tsuzuki.web.security.bodies import INTEGER_MAX

screen = Screen()

TERMS_SHOWN = 10
STATES = {
    WorkerState.ATTACHED: Word(message("Attached"), "succeeded", "good"),
    WorkerState.DRAINING: Word(message("Draining"), "pending", "warn"),
    WorkerState.DETACHED: Word(message("Detached"), "canceled", "bad"),
    WorkerState.GONE: Word(message("Stopped"), "canceled", "quiet"),
}
SILENT = Word(message("Not responding"), "timed-out", "bad")
LEADS = Word(message("Leading"), "assigned", "busy")
DETACH_REASONS = {
    DetachReason.SILENT: message("missed heartbeats"),
    DetachReason.OPERATOR: message("by an operator"),
}


class LeaderView(Model):
    """`lease_seconds` is how long the lease is taken for, `left_seconds` what is left of it."""

    is_led: bool
    epoch: int
    holder: str | None
    taken_at: Moment | None
    lease_expires_at: Moment | None
    lease_seconds: float | None
    left_seconds: float | None


class TermOut(Model):
    epoch: int
    holder: str
    taken_at: Moment
    ended_at: Moment | None


class WorkerRow(WorkerOut):
    """`is_silent`: it should have been heard. Runs that wait to be confirmed, and until when the first one is."""

    is_silent: bool
    confirming: int
    confirming_until: Moment | None


class WorkersView(Model):
    states: ClassVar = STATES
    silent: ClassVar = SILENT
    leads: ClassVar = LEADS
    detach_reasons: ClassVar = DETACH_REASONS

    leader: LeaderView
    terms: list[TermOut]
    workers: list[WorkerRow]
    next_cursor: str | None
    filters: dict[str, Any]
    slots: int
    silent_after_seconds: float


@screen.page("/workers", right=Right.WORKERS_READ, template="screens/workers.html", shared=True)
def workers_page(context: Page, query: Annotated[WorkerQuery, Query()]) -> WorkersView:
    workers = context.application.workers
    status = workers.status()
    shown = workers.workers(with_gone=True) if query.gone else status.workers
    page = context.page_of_rows(
        query,
        shown,
        position=_position,
        item=lambda view: _row(status, view),
    )
    return WorkersView(
        leader=_leader(status),
        terms=[TermOut(**vars(term)) for term in workers.past_terms(limit=TERMS_SHOWN)],
        workers=page.items,
        next_cursor=page.next_cursor,
        filters=page.filters,
        slots=status.slots,
        silent_after_seconds=status.silent_after_seconds,
    )


def _position(view: WorkerView) -> str:
    return view.worker.id


def _row(status: EngineStatus, view: WorkerView) -> WorkerRow:
    waiting = next((one for one in status.confirming if one.worker_id == view.worker.id), None)
    return WorkerRow(
        **vars(worker_out(view)),
        is_silent=status.is_silent(view),
        confirming=waiting.runs if waiting else 0,
        confirming_until=waiting.deadline_at if waiting else None,
    )


def _leader(status: EngineStatus) -> LeaderView:
    lead, lease = status.leadership, status.lease
    return LeaderView(
        is_led=status.is_led,
        epoch=lead.epoch,
        holder=lead.holder,
        taken_at=lead.taken_at,
        lease_expires_at=lease.expires_at if lease else None,
        lease_seconds=lease.left_seconds + lease.age_seconds if lease else None,
        left_seconds=max(lease.left_seconds, 0.0) if lease else None,
    )


class OrderView(Model):
    states: ClassVar = STATES

    worker: WorkerOut


def order(context: Page, worker_id: WorkerId) -> OrderView:
    return OrderView(worker=worker_out(context.application.workers.get(worker_id)))


@screen.confirmation(
    "/workers/{worker_id}/drain",
    right=Right.WORKERS_OPERATE,
    template="screens/worker_drain.html",
    question=order,
)
def drain(context: Page, worker_id: WorkerId) -> Response:
    context.application.workers.drain(worker_id)
    text = message("Worker %(worker)s is draining. It will stop when its runs have finished.")
    return context.redirect("/workers", text, worker=worker_id)


@screen.confirmation(
    "/workers/{worker_id}/detach",
    right=Right.WORKERS_OPERATE,
    template="screens/worker_detach.html",
    question=order,
)
def detach(context: Page, worker_id: WorkerId) -> Response:
    context.application.workers.detach(worker_id)
    text = message("Worker %(worker)s detached.")
    return context.redirect("/workers", text, worker=worker_id)


class StepDownView(Model):
    leader: LeaderView


class StepDownForm(BaseModel):
    """The term that was shown: another one is left alone."""

    model_config = ConfigDict(extra="forbid")

    epoch: int = Field(ge=0, le=INTEGER_MAX)


def present_term(context: Page) -> StepDownView:
    return StepDownView(leader=_leader(context.application.workers.status()))


@screen.confirmation(
    "/workers/step-down",
    right=Right.WORKERS_OPERATE,
    template="screens/leader_step_down.html",
    question=present_term,
)
def step_down(context: Page, form: Annotated[StepDownForm, Form()]) -> Response:
    workers = context.application.workers
    if workers.leader().epoch != form.epoch:
        raise Conflict(
            f"epoch {form.epoch} is over", hint="Look at which one is now.", code="epoch_over"
        )
    ended = workers.step_down()
    text = message("The leader of epoch %(epoch)s stepped down. A new leader is being elected.")
    return context.redirect("/workers", text, epoch=ended.epoch)
