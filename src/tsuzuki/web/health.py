"""`/livez`, `/readyz` and `/metrics`: for the programs that watch a process."""

from typing import Literal

from fastapi import APIRouter, Request, Response

from tsuzuki.model.access import Right
from tsuzuki.model.errors import SchemaMismatch, TsuzukiError
from tsuzuki.services.workers import Leadership
from tsuzuki.web.answers import Model, to_utc_text
from tsuzuki.web.route import ApiRoute
from tsuzuki.web.security.rights import public, requires
from tsuzuki.wiring.application import Application

router = APIRouter(route_class=ApiRoute, tags=["health"])


class Alive(Model):
    status: Literal["ok"] = "ok"


class Check(Model):
    """One thing that must be well. `detail` says what is not."""

    name: Literal["database", "schema", "lease"]
    ok: bool
    detail: str | None = None


class Readiness(Model):
    """`ready` if requests can be answered: database and schema. Without a leader they can, but nothing runs."""

    ready: bool
    checks: list[Check]


@router.get("/livez", dependencies=[public()])
async def livez() -> Alive:
    """The process answers."""
    return Alive()


@router.get("/readyz", dependencies=[public()], responses={503: {"model": Readiness}})
def readyz(request: Request, response: Response) -> Readiness:
    """The database answers, and its tables are those of this version."""
    application = request.app.state.application
    checks: list[Check] = []
    try:
        lease = application.workers.leader()
        checks += [Check(name="database", ok=True), _schema(application), _lease(lease)]
    except TsuzukiError as problem:
        checks.append(Check(name="database", ok=False, detail=problem.specific_code))
    ready = all(check.ok for check in checks if check.name != "lease")
    response.status_code = 200 if ready else 503
    return Readiness(ready=ready, checks=checks)


def _schema(application: Application) -> Check:
    try:
        application.maintenance.require_current()
    except SchemaMismatch as problem:
        return Check(name="schema", ok=False, detail=problem.message)
    return Check(name="schema", ok=True)


def _lease(lease: Leadership) -> Check:
    if not lease.is_valid:
        return Check(name="lease", ok=False, detail="no process leads")
    ends = to_utc_text(lease.lease_expires_at)
    return Check(name="lease", ok=True, detail=f"epoch {lease.epoch}, until {ends}")


@router.get(
    "/metrics",
    dependencies=[requires(Right.WORKERS_READ)],
    response_class=Response,
    responses={200: {"content": {"text/plain": {"schema": {"type": "string"}}}}},
)
def metrics(request: Request) -> Response:
    """What the engine of this process counted, for Prometheus."""
    content_type, text = request.app.state.application.local_engine.metrics_text()
    return Response(text, media_type=content_type)
