"""Sessions: browsers that are signed in. One ends one's own; who manages access, those of others."""

from typing import Annotated

from fastapi import Path, Query, Response
from pydantic import BaseModel

from tsuzuki.model.access import Right
from tsuzuki.model.errors import NotFound
from tsuzuki.services.access.permissions import manages
from tsuzuki.web.answers import Model
from tsuzuki.web.api.sessions import SessionOut
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import SIGN_IN, Screen
from tsuzuki.web.security.bodies import INTEGER_MAX

screen = Screen()

SessionId = Annotated[int, Path(ge=1, le=INTEGER_MAX)]


class SessionsQuery(BaseModel):
    every_user: bool = False


class SessionsView(Model):
    """The newest first. `others`: how many of one's own are not the one that is looked from."""

    sessions: list[SessionOut]
    every_user: bool
    others: int


class SessionPage(Model):
    session: SessionOut


class OthersView(Model):
    """What ends: all of one's own sessions but this one."""

    sessions: list[SessionOut]


@screen.page("/sessions", right=Right.ACCESS_OWN, template="screens/sessions.html")
def sessions_page(context: Page, query: Annotated[SessionsQuery, Query()]) -> SessionsView:
    return SessionsView(
        sessions=_find(context, every_user=query.every_user),
        every_user=query.every_user,
        others=len(_others(context)),
    )


def _find(context: PageContext, *, every_user: bool = False) -> list[SessionOut]:
    by = context.principal
    found = context.application.sessions.find(by=by, every_user=every_user)
    return [SessionOut(**view.as_dict(), is_current=view.id == by.session_id) for view in found]


def _others(context: PageContext) -> list[SessionOut]:
    return [session for session in _find(context) if not session.is_current]


def question(context: Page, session_id: SessionId) -> SessionPage:
    for session in _find(context, every_user=manages(context.principal)):
        if session.id == session_id:
            return SessionPage(session=session)
    raise NotFound(f"there is no session {session_id}", code="session_not_found")


@screen.confirmation(
    "/sessions/{session_id:int}/end",
    right=Right.ACCESS_OWN,
    template="screens/session_end.html",
    question=question,
)
def end(context: Page, session_id: SessionId) -> Response:
    context.application.sessions.end(session_id, by=context.principal)
    if session_id == context.principal.session_id:
        return context.redirect(SIGN_IN)
    return context.redirect("/sessions", message("Session %(id)s ended."), id=session_id)


def others(context: Page) -> OthersView:
    return OthersView(sessions=_others(context))


@screen.confirmation(
    "/sessions/end-others",
    right=Right.ACCESS_OWN,
    template="screens/sessions_end_others.html",
    question=others,
)
def end_others(context: Page) -> Response:
    ended = context.application.sessions.end_all(by=context.principal, keep_own=True)
    return context.redirect("/sessions", message("Sessions ended: %(count)s."), count=ended)
