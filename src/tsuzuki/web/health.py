"""`/livez`, `/readyz` and `/metrics`, for monitoring."""

from typing import Literal

from fastapi import Request, Response
from pydantic import Field

from tsuzuki.model.access import Right
from tsuzuki.model.errors import SchemaMismatch, TsuzukiError
from tsuzuki.services.workers import LeaseView
from tsuzuki.web.answers import Model, to_utc_text
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.rights import PUBLIC, monitoring
from tsuzuki.wiring.application import Application

router = ApiRouter("health", prefix="")


class Alive(Model):
    """`installation` is the same for all servers on one database, and another one for each database."""

    status: Literal["ok"] = "ok"
    installation: str


class HealthCheck(Model):
    """One thing that should be well. `detail` says what is not."""

    name: Literal["database", "schema", "lease", "loops"]
    ok: bool
    detail: str | None = None


class LeaseAge(Model):
    """How long ago the leader renewed its lease, and how long the lease is valid yet; below zero: it has run out.
    By the clock of the database."""

    epoch: int
    age_seconds: float
    left_seconds: float


class Readiness(Model):
    """`ready` if this process can answer requests: database and schema. That no process leads, or that loops of the
    engine in this process keep failing, is reported by the checks `lease` and `loops` and makes no process unready:
    taking it out of service would help nothing."""

    ready: bool
    checks: list[HealthCheck]
    lease: LeaseAge | None = Field(
        None, description="Null if no process is the leader, or the database is unreachable."
    )


@router.get("/livez", right=PUBLIC)
async def livez(request: Request) -> Alive:
    """The process answers."""
    return Alive(installation=request.app.state.session_cookie.installation)


@router.get("/readyz", right=PUBLIC, responses={503: {"model": Readiness}})
def readyz(request: Request, response: Response) -> Readiness:
    """The database answers, and its tables are those of this version. 503 if not; never because of the leader or of
    failing loops."""
    application: Application = request.app.state.application
    checks: list[HealthCheck] = []
    lease = None
    try:
        lease = application.workers.lease()
        checks += [HealthCheck(name="database", ok=True), _schema(application), _lease(lease)]
    except TsuzukiError as problem:
        checks.append(HealthCheck(name="database", ok=False, detail=problem.specific_code))
    ready = all(check.ok for check in checks if check.name != "lease")
    checks += _loops(application)
    response.status_code = 200 if ready else 503
    return Readiness(ready=ready, checks=checks, lease=_lease_age(lease))


def _schema(application: Application) -> HealthCheck:
    try:
        application.maintenance.require_current()
    except SchemaMismatch as problem:
        return HealthCheck(name="schema", ok=False, detail=problem.message)
    return HealthCheck(name="schema", ok=True)


def _loops(application: Application) -> list[HealthCheck]:
    """None in a process without an engine."""
    failing = application.local_engine.failing_loops()
    if failing is None:
        return []
    # Anyone may read this, so the error itself is left to the log and to `doctor`.
    detail = ", ".join(f"{one.loop}: {one.code}" for one in failing)
    return [HealthCheck(name="loops", ok=not failing, detail=detail or None)]


def _lease(lease: LeaseView | None) -> HealthCheck:
    if lease is None or not lease.is_valid:
        return HealthCheck(name="lease", ok=False, detail="there is no leader")
    ends = to_utc_text(lease.expires_at)
    return HealthCheck(name="lease", ok=True, detail=f"epoch {lease.epoch}, until {ends}")


def _lease_age(lease: LeaseView | None) -> LeaseAge | None:
    if lease is None:
        return None
    return LeaseAge(
        epoch=lease.epoch,
        age_seconds=round(lease.age_seconds, 3),
        left_seconds=round(lease.left_seconds, 3),
    )


@router.get(
    "/metrics",
    right=monitoring(Right.WORKERS_READ),
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(request: Request) -> Response:
    """What the engine of this process counted, for Prometheus."""
    content_type, text = request.app.state.application.local_engine.metrics_text()
    return Response(text, media_type=content_type)
