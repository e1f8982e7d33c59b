"""`/tokens`: the tokens of programs. The token itself is returned once, when it is created."""

from typing import Annotated

from fastapi import Path, Query
from pydantic import Field

from tsuzuki.model.access import Right, Role
from tsuzuki.services.access.tokens import (
    LIFETIME_DEFAULT_SECONDS,
    LIFETIME_MAX_SECONDS,
    LIFETIME_MIN_SECONDS,
    TokenState,
    TokenView,
)
from tsuzuki.web.answers import Model, Moment, Number
from tsuzuki.web.api.names import GivenName
from tsuzuki.web.context import Context
from tsuzuki.web.idempotency import NOT_KEPT
from tsuzuki.web.paging import Page, PageRequest
from tsuzuki.web.route import ApiRouter
from tsuzuki.web.security.rights import AUTHENTICATED

router = ApiRouter("access")

RightName = Annotated[str, Field(pattern=r"^[a-z_]+:[a-z_]+$", max_length=100)]
TokenId = Annotated[str, Path(min_length=1, max_length=200, description="ID or name of the token.")]


class TokenOut(Model):
    """A token without its secret part. `rights` is what it may do now; `user` whose it is; `parent` the id of the token
    that it was made with."""

    id: str
    name: str
    state: TokenState
    role: Role
    scopes: list[str] | None
    rights: list[str]
    user: str | None
    created_at: Moment
    created_by: str
    expires_at: Moment
    last_used_at: Moment | None
    revoked_at: Moment | None
    revoked_by: str | None
    parent: str | None


class RevokedTokenOut(TokenOut):
    also_revoked: list[str] = Field(description="Names of the tokens created with it.")


class NewTokenOut(TokenOut):
    token: str = Field(description="The token. It is not stored and cannot be shown again.")


class NewTokenRequest(Model):
    name: GivenName
    role: Role
    scopes: list[RightName] | None = Field(
        None,
        max_length=50,
        description="Scopes to limit the token to (default: all permissions of the role).",
    )
    expires_in_seconds: Number = Field(
        LIFETIME_DEFAULT_SECONDS,
        ge=LIFETIME_MIN_SECONDS,
        le=LIFETIME_MAX_SECONDS,
        description="A token created with another token expires no later than that one and is revoked "
        "with it.",
    )


class TokenQuery(PageRequest):
    revoked: bool = Field(False, description="Include revoked tokens.")


def token_out(view: TokenView) -> TokenOut:
    return TokenOut(**view.as_dict())


@router.get("/tokens", right=Right.ACCESS_OWN)
def list_tokens(context: Context, query: Annotated[TokenQuery, Query()]) -> Page[TokenOut]:
    """List tokens by name: one's own, or all for a caller that manages access."""
    views = context.application.tokens.find(by=context.principal, with_revoked=query.revoked)
    return context.page_of_rows(
        query,
        views,
        position=_position,
        item=token_out,
    )


def _position(view: TokenView) -> str:
    return f"{view.name} {view.id}"  # a revoked token may have the same name


@router.post(
    "/tokens", right=Right.ACCESS_OWN, refuses=[409], status_code=201, openapi_extra=NOT_KEPT
)
def create_token(context: Context, body: NewTokenRequest) -> NewTokenOut:
    """Make a token with no more rights than the caller has. A name that is taken answers 409."""
    made = context.application.tokens.create(by=context.principal, **body.model_dump())
    return NewTokenOut(**made.token.as_dict(), token=made.text)


# Any principal: a token may revoke itself, whatever its scopes.
@router.delete("/tokens/{token_id}", right=AUTHENTICATED, refuses=[404, 409])
def revoke_token(context: Context, token_id: TokenId) -> RevokedTokenOut:
    """Revoke a token and all that were made with it; they are refused from now on."""
    revoked = context.application.tokens.revoke(token_id, by=context.principal)
    return RevokedTokenOut(**revoked.as_dict())
