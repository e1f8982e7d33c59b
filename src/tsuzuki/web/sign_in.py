"""`/sign-in` and `/setup`: how a session, and the first user, come to be. Public, for there are no credentials yet.

A wrong name and a wrong password are answered in the same words; the service limits how often one may try.
"""

from fastapi import Request, Response
from pydantic import Field
from starlette.concurrency import run_in_threadpool

from tsuzuki.model.access import Role
from tsuzuki.model.errors import NotAuthenticated
from tsuzuki.services.access.sessions import SignedIn, SignInPlace
from tsuzuki.services.access.users import User
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.api.names import GivenName, NewPassword, Password
from tsuzuki.web.api.users import UserOut, user_out
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.refusal_log import note_refusal
from tsuzuki.web.security.rights import PUBLIC
from tsuzuki.web.security.session_cookie import session_cookie, session_secret

router = ApiRouter("access")


class SignIn(Model):
    name: GivenName
    password: Password


class SignedInOut(Model):
    """Whose session it is, and what it may do. Its secret is in the cookie only."""

    user: str
    role: Role
    rights: list[str]
    session_id: int
    expires_at: Moment


class Setup(Model):
    code: str = Field(max_length=100, description="One-time code printed by --setup.")
    name: GivenName
    password: NewPassword


@router.post("/sign-in", right=PUBLIC, refuses=[401, 429])
def sign_in(request: Request, response: Response, body: SignIn) -> SignedInOut:
    """Start a session, whose cookie comes with the answer. After too many attempts 429 with Retry-After."""
    place = SignInPlace(
        address=request.client.host if request.client else None,
        user_agent=request.headers.get("user-agent"),
    )
    application = request.app.state.application
    signed_in = application.sessions.sign_in(
        body.name, body.password, place=place, replacing=session_secret(request)
    )
    session, principal = signed_in.session, signed_in.principal
    keep_session(request, response, signed_in)
    return SignedInOut(
        user=session.user,
        role=principal.role,
        rights=sorted(principal.rights_among(application.rights.values())),
        session_id=session.id,
        expires_at=session.expires_at,
    )


def keep_session(request: Request, response: Response, signed_in: SignedIn) -> None:
    """Give the browser the cookie of its session."""
    session = signed_in.session
    lifetime = session.expires_at - session.created_at
    session_cookie(request).keep(
        request, response, signed_in.secret, seconds=lifetime.total_seconds()
    )


def end_own_session(request: Request, response: Response) -> None:
    """Sign the principal of a request out, and have the browser forget its cookie."""
    principal, application = request.state.principal, request.app.state.application
    if principal.session_id is not None:
        application.sessions.end(principal.session_id, by=principal)
    if principal.owner_link_id is not None:
        application.owner_links.end(principal.owner_link_id, actor=principal.actor)
    session_cookie(request).forget(request, response)


@router.post("/setup", right=PUBLIC, refuses=[401, 409], status_code=201)
async def set_up(request: Request, body: Setup) -> UserOut:
    """Add the first user, an admin, with the code of a server that was started with --setup."""
    return user_out(await redeem_setup_code(request, body.code, body.name, body.password))


async def redeem_setup_code(request: Request, code: str, name: str, password: str) -> User:
    """Add the first user, and log a code that is refused. Raises as `SetupCodes.redeem`."""
    redeem = request.app.state.application.setup_codes.redeem
    try:
        user: User = await run_in_threadpool(redeem, code, name=name, password=password)
    except NotAuthenticated:
        note_refusal(request, "setup code")
        raise
    return user
