"""`/workers` and `/leader`: list workers, and drain, detach or depose them."""

from dataclasses import asdict
from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from tsuzuki.model.access import Right
from tsuzuki.model.worker import DetachReason, WorkerState
from tsuzuki.services.workers import WorkerView
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.context import Context
from tsuzuki.web.paging import Page, PageRequest
from tsuzuki.web.route import ApiRouter

router = ApiRouter("workers")

WorkerId = Annotated[str, Path(min_length=1, max_length=200, examples=["host-1234-a1b2c3"])]


class AbilitiesOut(Model):
    """What a worker can execute: kinds of jobs, functions of the Python packages that jobs name, and functions in the
    `__main__` of its own program. `missing` are functions that it could not load."""

    kinds: list[str]
    packages: list[str]
    program: str | None
    missing: list[str]


class WorkerOut(Model):
    """A worker, what it holds, and how long ago it was heard (null if clock skew hides it). `only_job`: it was
    started for that job, and gets no run of another; `only_run`: for that run alone. It gets only runs that its
    `abilities` cover; null: any."""

    id: str
    host: str
    pid: int
    state: WorkerState
    detach_reason: DetachReason | None
    capacity: int
    tags: list[str]
    only_job: str | None
    only_run: int | None
    abilities: AbilitiesOut | None
    software_version: str
    started_at: Moment
    heartbeat_at: Moment
    drain_ordered_at: Moment | None
    held: int
    silent_seconds: float | None
    leads: bool


class LeaderOut(Model):
    """The lease. `is_valid`: a process leads."""

    epoch: int
    holder: str | None
    lease_expires_at: Moment
    taken_at: Moment | None
    is_valid: bool


class WorkerQuery(PageRequest):
    gone: bool = Field(False, description="Include stopped workers.")


def worker_out(view: WorkerView) -> WorkerOut:
    return WorkerOut(**view.as_dict())


def _get(context: Context, worker_id: str) -> WorkerOut:
    views = context.application.workers.workers(with_gone=True)
    return next(worker_out(view) for view in views if view.worker.id == worker_id)


@router.get("/workers", right=Right.WORKERS_READ)
def list_workers(context: Context, query: Annotated[WorkerQuery, Query()]) -> Page[WorkerOut]:
    """List workers by id: what they hold, and when they were last heard."""

    views = context.application.workers.workers(with_gone=query.gone)
    return context.page_of_rows(query, views, position=_id, item=worker_out)


def _id(view: WorkerView) -> str:
    return view.worker.id


@router.post("/workers/{worker_id}/drain", right=Right.WORKERS_OPERATE, refuses=[404, 409])
def drain_worker(context: Context, worker_id: WorkerId) -> WorkerOut:
    """Let a worker finish what it has, take nothing new, and leave."""
    context.application.workers.drain(worker_id)
    return _get(context, worker_id)


@router.post("/workers/{worker_id}/detach", right=Right.WORKERS_OPERATE, refuses=[404, 409])
def detach_worker(context: Context, worker_id: WorkerId) -> WorkerOut:
    """Detach a worker: what it runs is stopped, and retried elsewhere."""
    context.application.workers.detach(worker_id)
    return _get(context, worker_id)


@router.get("/leader", right=Right.WORKERS_READ)
def get_leader(context: Context) -> LeaderOut:
    """Which process leads, since when, and in which epoch."""
    return LeaderOut(**asdict(context.application.workers.leader()))


@router.post("/leader/step-down", right=Right.WORKERS_OPERATE, refuses=[409])
def step_down(context: Context) -> LeaderOut:
    """End the current leader's term; another election follows at once. Answers the term that ended."""
    return LeaderOut(**asdict(context.application.workers.step_down()))
