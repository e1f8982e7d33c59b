"""`tsuzuki token`: credentials for programs that use the API."""

from dataclasses import replace
from typing import Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.arguments import Duration
from tsuzuki.cli.commands import Group
from tsuzuki.cli.completions import right_names
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.options import EnumChoice
from tsuzuki.cli.terminal.confirmation import confirm, yes_option
from tsuzuki.cli.terminal.formatting import format_list
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.model.access import Role


def _format_scopes(scopes: list[str] | None) -> str:
    return "all of the role" if scopes is None else format_list(scopes)


COLUMNS = [
    Column("id", "TOKEN"),
    Column("name"),
    Column("state"),
    Column("role"),
    Column("scopes", format=_format_scopes),
    Column("user"),
    Column("expires_at", "EXPIRES"),
    Column("last_used_at", "LAST USED"),
]


@click.group(cls=Group)
def token() -> None:
    """Create and revoke tokens for programs that use the API.

    \b
    tsuzuki token create ci --role operator
    tsuzuki token ls
    """


@token.command()
@click.argument("name")
@click.option(
    "--role",
    type=EnumChoice(Role),
    default=Role.VIEWER,
    help="Role whose permissions the token gets.",
)
@click.option(
    "--scope",
    "scopes",
    shell_complete=right_names,
    multiple=True,
    metavar="RIGHT",
    help="Limit the token to this permission of the role. Can be repeated.",
)
@click.option(
    "--expires-in",
    type=Duration(),
    default="90d",
    metavar="DURATION",
    help="Time until the token expires.",
)
@click.pass_obj
def create(
    invocation: Invocation,
    name: str,
    role: Role,
    scopes: tuple[str, ...],
    expires_in: float,
) -> None:
    """Create a token and print it. It cannot be shown again.

    \b
    tsuzuki token create ci --role operator --expires-in 30d
    tsuzuki token create watch --scope runs:read --scope jobs:read
    """
    with open_application(invocation) as application:
        made = application.tokens.create(
            name,
            by=application.principal,
            role=role,
            scopes=scopes or None,
            expires_in_seconds=expires_in,
        )
    # The token alone, so that a shell can keep it in a variable.
    shown: dict[str, Any] = {**made.token.as_dict(), "token": made.text}
    is_table = invocation.output is OutputFormat.TABLE
    plain = replace(invocation, output=OutputFormat.PLAIN) if is_table else invocation
    emit(plain, shown, columns=[Column("token")])
    say(
        invocation,
        "Save the token now: it will not be shown again. It expires on "
        f"{made.token.expires_at:%Y-%m-%d}.",
    )


@token.command()
@click.option("--all", "with_revoked", is_flag=True, help="Include revoked tokens.")
@click.pass_obj
def ls(invocation: Invocation, with_revoked: bool) -> None:
    """List tokens with their permissions, expiry and last use.

    \b
    tsuzuki token ls --all
    """
    with open_application(invocation) as application:
        views = application.tokens.find(by=application.principal, with_revoked=with_revoked)
    emit(
        invocation,
        [view.as_dict() for view in views],
        columns=COLUMNS,
        empty="no tokens yet; create one with: tsuzuki token create NAME",
    )


@token.command()
@click.argument("name_or_id", metavar="NAME")
@yes_option
@click.pass_obj
def revoke(invocation: Invocation, name_or_id: str, yes: bool) -> None:
    """Revoke a token and every token created with it.

    Name the token by its name or by the first part of its value.

    \b
    tsuzuki token revoke ci --yes
    """
    with open_application(invocation) as application:
        found = application.tokens.get(name_or_id, by=application.principal)
        also = f" and {found.made_with} created with it" if found.made_with else ""
        named = f"{found.token.name} ({found.token.id})"
        confirm(invocation, f"revoke the token {named}{also}", yes=yes)
        revoked = application.tokens.revoke(name_or_id, by=application.principal)
    say(invocation, f"Token '{revoked.token.name}' ({revoked.token.id}) revoked.")
    if revoked.also:
        say(invocation, f"Tokens created with it were revoked too: {', '.join(revoked.also)}.")
    if invocation.output.is_json:
        emit(invocation, revoked.as_dict())
