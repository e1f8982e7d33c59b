"""`/me`: the principal of the request and its permissions."""

from tsuzuki.model.access import Role
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.context import Context
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.rights import AUTHENTICATED

router = ApiRouter("access")


class MeOut(Model):
    """The principal of a request. `scopes` is what a token is narrowed to, null for everything its role has;
    `expires_at` is the end of the token or the session, null for the owner of a machine without users."""

    actor: str
    user: str | None
    role: Role
    rights: list[str]
    scopes: list[str] | None
    token_id: str | None
    session_id: int | None
    expires_at: Moment | None


@router.get("/me", right=AUTHENTICATED)
def get_me(context: Context) -> MeOut:
    """For whom this request acts, what it may do, and until when."""
    principal, application = context.principal, context.application
    token = application.tokens.of(principal)
    session = application.sessions.of(principal)
    found = token or session
    return MeOut(
        actor=principal.actor,
        user=found.user if found else None,
        role=principal.role,
        rights=sorted(principal.rights_among(application.rights.values())),
        scopes=None if principal.scopes is None else sorted(principal.scopes),
        token_id=token.id if token else None,
        session_id=principal.session_id,
        expires_at=found.expires_at if found else None,
    )
