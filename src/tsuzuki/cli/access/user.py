"""`tsuzuki user`: people who sign in to the web page."""

from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.access.password_input import password_stdin_option, read_password
from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Group
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.options import EnumChoice
from tsuzuki.cli.terminal.confirmation import confirm, yes_option
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.model.access import Role

if TYPE_CHECKING:
    from tsuzuki.services.access.users import User

COLUMNS = [
    Column("name"),
    Column("role"),
    Column("disabled_at", "STATE", format=lambda at: "enabled" if at is None else "disabled"),
    Column("last_sign_in_at", "LAST SIGN-IN"),
    Column("created_at", "CREATED"),
    Column("created_by", "BY"),
]


@click.group(cls=Group)
def user() -> None:
    """Manage users, their roles and passwords.

    \b
    tsuzuki user add ada --role admin
    tsuzuki user ls
    """


@user.command()
@click.argument("name")
@click.option("--role", type=EnumChoice(Role), default=Role.VIEWER, help="Role of the user.")
@password_stdin_option
@click.pass_obj
def add(invocation: Invocation, name: str, role: Role, password_stdin: bool) -> None:
    """Add a user. The password is asked for, or read from stdin.

    \b
    tsuzuki user add ada --role admin
    tsuzuki user add bob --password-stdin
    """
    with open_application(invocation) as application:
        password = read_password(from_stdin=password_stdin, prompt=f"Password for {name}")
        view = application.users.add(name, password, role=role, by=application.principal)
    _tell(invocation, view, f"User '{view.name}' can now sign in as {view.role}.")


@user.command()
@click.argument("name")
@password_stdin_option
@click.pass_obj
def passwd(invocation: Invocation, name: str, password_stdin: bool) -> None:
    """Set a user's password and end all of the user's sessions.

    \b
    tsuzuki user passwd ada
    """
    with open_application(invocation) as application:
        application.users.get(name, by=application.principal)
        password = read_password(from_stdin=password_stdin, prompt=f"New password for {name}")
        application.users.set_password(name, password, by=application.principal)
        view = application.users.get(name, by=application.principal)
    _tell(invocation, view, f"Password of '{view.name}' changed; all sessions have ended.")


@user.command()
@click.pass_obj
def ls(invocation: Invocation) -> None:
    """List users with their role and last sign-in."""
    with open_application(invocation) as application:
        views = application.users.find(by=application.principal)
    emit(
        invocation,
        [view.as_dict() for view in views],
        columns=COLUMNS,
        empty="no users yet; add one with: tsuzuki user add NAME --role admin",
    )


@user.command(name="role")
@click.argument("name")
@click.argument("role", type=EnumChoice(Role))
@click.pass_obj
def set_role(invocation: Invocation, name: str, role: Role) -> None:
    """Change a user's role: viewer, operator or admin.

    \b
    tsuzuki user role bob operator
    """
    with open_application(invocation) as application:
        view = application.users.set_role(name, role, by=application.principal)
    _tell(invocation, view, f"'{view.name}' now has the role {view.role}.")


@user.command()
@click.argument("name")
@click.pass_obj
def disable(invocation: Invocation, name: str) -> None:
    """Disable a user: end all sessions and refuse all tokens. Nothing is deleted.

    \b
    tsuzuki user disable bob
    """
    with open_application(invocation) as application:
        view = application.users.disable(name, by=application.principal)
    _tell(invocation, view, f"'{view.name}' is disabled. Undo with: tsuzuki user enable {name}")


@user.command()
@click.argument("name")
@click.pass_obj
def enable(invocation: Invocation, name: str) -> None:
    """Enable a disabled user.

    \b
    tsuzuki user enable bob
    """
    with open_application(invocation) as application:
        view = application.users.enable(name, by=application.principal)
    _tell(invocation, view, f"'{view.name}' can sign in again.")


@user.command()
@click.argument("name")
@yes_option
@click.pass_obj
def rm(invocation: Invocation, name: str, yes: bool) -> None:
    """Delete a user with all sessions and tokens.

    \b
    tsuzuki user rm bob --yes
    """
    with open_application(invocation) as application:
        view = application.users.get(name, by=application.principal)
        confirm(invocation, f"delete user {name} with all sessions and tokens", yes=yes)
        application.users.remove(name, by=application.principal)
    _tell(invocation, view, f"User '{name}' deleted.")


def _tell(invocation: Invocation, view: "User", text: str) -> None:
    say(invocation, text)
    if invocation.output.is_json:
        shown: dict[str, Any] = view.as_dict()
        emit(invocation, shown)
