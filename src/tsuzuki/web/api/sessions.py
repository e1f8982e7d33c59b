"""`/sessions`: list and end browser sessions."""

from typing import Annotated

from fastapi import Path, Query, Request, Response
from pydantic import Field

from tsuzuki.model.access import Right
from tsuzuki.model.errors import Conflict
from tsuzuki.services.access.sessions import Session
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.context import Context
from tsuzuki.web.idempotency import NOT_KEPT
from tsuzuki.web.paging import Page, PageRequest, count_of
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.bodies import INTEGER_MAX
from tsuzuki.web.sign_in import end_own_session

router = ApiRouter("access")

SessionId = Annotated[int, Path(ge=1, le=INTEGER_MAX)]


class SessionOut(Model):
    """A session. `last_seen_at` is to the minute; `is_current`: the request was made in it."""

    id: int
    user: str
    created_at: Moment
    last_seen_at: Moment
    expires_at: Moment
    address: str | None
    user_agent: str | None
    is_current: bool


class SessionQuery(PageRequest):
    every_user: bool = Field(
        False, description="Include the sessions of all users; requires access:manage."
    )


@router.get("/sessions", right=Right.ACCESS_OWN)
def list_sessions(context: Context, query: Annotated[SessionQuery, Query()]) -> Page[SessionOut]:
    """List one's own sessions, the newest first."""
    by = context.principal
    views = context.application.sessions.find(by=by, every_user=query.every_user)

    def find(after: int | None, limit: int) -> list[Session]:
        ordered = sorted(views, key=lambda view: -view.id)
        return [view for view in ordered if after is None or view.id < after][:limit]

    return context.page(
        query,
        find=find,
        position=lambda view: view.id,
        item=lambda view: SessionOut(**view.as_dict(), is_current=view.id == by.session_id),
        count=lambda: count_of(len(views)),
    )


@router.delete("/sessions/{session_id}", right=Right.ACCESS_OWN, refuses=[404], status_code=204)
def end_session(context: Context, session_id: SessionId) -> None:
    """End a session: one's own, or that of another user for a caller that manages access."""
    context.application.sessions.end(session_id, by=context.principal)


@router.post(
    "/sign-out", right=Right.ACCESS_OWN, refuses=[409], status_code=204, openapi_extra=NOT_KEPT
)
def sign_out(request: Request, context: Context, response: Response) -> None:
    """End the session of the request."""
    if not context.principal.has_session:
        raise Conflict(
            "the request does not belong to a session",
            hint="A token is revoked with: DELETE /api/v1/tokens/ID",
            code="no_session",
        )
    end_own_session(request, response)
