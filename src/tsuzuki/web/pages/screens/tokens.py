"""Tokens of programs. The token itself is shown once, on the page that confirms its creation."""

from typing import Annotated

from fastapi import Form, Query, Response
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model.access import Right, Role
from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.services.access.permissions import NAME_LENGTH_MAX
from tsuzuki.services.access.tokens import DAY_SECONDS, LIFETIME_DEFAULT_SECONDS, TokenState
from tsuzuki.web.answers import Model
from tsuzuki.web.api.tokens import NewTokenOut, RightName, TokenId, TokenOut, token_out
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.pages.words import Word

screen = Screen()

STATES = {
    TokenState.LIVE: Word(message("Active"), "succeeded", "good"),
    TokenState.EXPIRED: Word(message("Expired"), "timed-out", "warn"),
    TokenState.REVOKED: Word(message("Revoked"), "canceled", "quiet"),
}
DAYS_DEFAULT = round(LIFETIME_DEFAULT_SECONDS / DAY_SECONDS)


class TokensQuery(BaseModel):
    revoked: bool = False


class TokensView(Model):
    """One's own tokens, or all for a viewer that manages access."""

    tokens: list[TokenOut]
    revoked: bool

    def state(self, token: TokenOut) -> Word:
        return STATES[token.state]


class TokenForm(BaseModel):
    """As it was typed; the service says what is wrong."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(max_length=NAME_LENGTH_MAX * 2)] = ""
    role: Role = Role.VIEWER
    scopes: Annotated[list[RightName], Field(max_length=100)] = []
    days: Annotated[str, Field(max_length=20)] = str(DAYS_DEFAULT)


class NewTokenView(Model):
    """`roles` and `rights` are those that the viewer can give."""

    form: TokenForm
    roles: list[Role]
    rights: list[str]


class MadeTokenView(Model):
    token: NewTokenOut


class RevokeView(Model):
    token: TokenOut


@screen.page("/tokens", right=Right.ACCESS_OWN, template="screens/tokens.html")
def tokens_page(context: Page, query: Annotated[TokensQuery, Query()]) -> TokensView:
    found = context.application.tokens.find(by=context.principal, with_revoked=query.revoked)
    tokens = sorted(map(token_out, found), key=lambda token: (token.name, token.id))
    return TokensView(tokens=tokens, revoked=query.revoked)


@screen.page("/tokens/new", right=Right.ACCESS_OWN, template="screens/token_new.html")
def new_token_page(context: Page, form: TokenForm | None = None) -> NewTokenView:
    by = context.principal
    return NewTokenView(
        form=form or TokenForm(),
        roles=[role for role in Role if by.may_grant(role, None)] or [by.role],
        rights=sorted(by.rights_among(context.application.rights.values())),
    )


@screen.form("/tokens/new", right=Right.ACCESS_OWN, page=new_token_page)
def make_token(context: Page, form: Annotated[TokenForm, Form()]) -> Response:
    """Answers with the token itself, without a redirect: it is kept nowhere. Sent again, the name is taken."""
    made = context.application.tokens.create(
        form.name.strip(),
        by=context.principal,
        role=form.role,
        scopes=form.scopes or None,
        expires_in_seconds=_days(form.days) * DAY_SECONDS,
    )
    shown = NewTokenOut(**made.token.as_dict(), token=made.text)
    return context.render("screens/token_made.html", MadeTokenView(token=shown), status=201)


def _days(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise UsageError(
            f"{text!r} is no number of days",
            hint="Write a number, such as 90.",
            code="token_expiry",
        ) from None


def question(context: Page, token_id: TokenId) -> RevokeView:
    return RevokeView(token=_token(context, token_id))


@screen.confirmation(
    "/tokens/{token_id}/revoke",
    right=Right.ACCESS_OWN,
    template="screens/token_revoke.html",
    question=question,
)
def revoke(context: Page, token_id: TokenId) -> Response:
    token = _token(context, token_id)
    context.application.tokens.revoke(token.id, by=context.principal)
    return context.redirect("/tokens", message("Token %(name)s revoked."), name=token.name)


def _token(context: PageContext, token_id: str) -> TokenOut:
    """By its id only: another token may have taken the name meanwhile."""
    found = context.application.tokens.find(by=context.principal, with_revoked=True)
    for view in found:
        if view.id == token_id:
            return token_out(view)
    raise NotFound(
        f"there is no token {token_id!r}", hint="See: tsuzuki token ls", code="token_not_found"
    )
