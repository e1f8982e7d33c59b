"""`tsuzuki settings`: show and change settings while everything is running."""

import sys
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Group
from tsuzuki.cli.completions import setting_names
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.terminal.formatting import format_number
from tsuzuki.cli.terminal.output import Column, emit, is_terminal, say

if TYPE_CHECKING:
    from tsuzuki.services.settings import SettingView

ROW = [
    Column("key"),
    Column("value", format=format_number, align="right"),
    Column("default", format=format_number, align="right"),
    Column("updated_by", "SET BY"),
    Column("description"),
]
OBJECT = [
    Column("key"),
    Column("value", format=format_number),
    Column("default", format=format_number),
    Column("minimum", format=format_number),
    Column("maximum", format=format_number),
    Column("updated_by", "SET BY"),
    Column("updated_at", "SET AT"),
    Column("description"),
]


@click.group(cls=Group)
def settings() -> None:
    """Show and change settings while everything is running.

    \b
    tsuzuki settings ls
    tsuzuki settings set log_retention_days_db 30
    """


@settings.command()
@click.pass_obj
def ls(invocation: Invocation) -> None:
    """List all settings with their effective values."""
    with open_application(invocation) as application:
        views = application.settings.find()
    rows = [view.as_dict() for view in views]
    is_for_people = invocation.output is OutputFormat.TABLE and is_terminal(sys.stdout)
    emit(invocation, rows, columns=terminal_row(rows) if is_for_people else ROW)


def terminal_row(rows: list[dict[str, Any]]) -> list[Column]:
    """Where no setting was set there is more space for what they mean."""
    is_any_set = any(row["updated_by"] for row in rows)
    return [column for column in ROW if is_any_set or column.key != "updated_by"]


@settings.command()
@click.argument("key", shell_complete=setting_names)
@click.pass_obj
def get(invocation: Invocation, key: str) -> None:
    """Show a setting; with --output plain, only its value.

    \b
    tsuzuki settings get lease_seconds --output plain
    """
    with open_application(invocation) as application:
        view = application.settings.get(key)
    _show(invocation, view)


@settings.command(name="set")
@click.argument("key", shell_complete=setting_names)
@click.argument("value")
@click.pass_obj
def set_(invocation: Invocation, key: str, value: str) -> None:
    """Change a setting. Running engines pick it up automatically.

    \b
    tsuzuki settings set worker_ttl_seconds 12
    """
    with open_application(invocation) as application:
        before = application.settings.get(key)
        after = application.settings.set(key, value)
    _tell_change(invocation, before, after)


@settings.command()
@click.argument("key", shell_complete=setting_names)
@click.pass_obj
def reset(invocation: Invocation, key: str) -> None:
    """Reset a setting to its default.

    \b
    tsuzuki settings reset worker_ttl_seconds
    """
    with open_application(invocation) as application:
        before = application.settings.get(key)
        after = application.settings.reset(key)
    _tell_change(invocation, before, after)


def _tell_change(invocation: Invocation, before: "SettingView", after: "SettingView") -> None:
    old, new = format_number(before.value), format_number(after.value)
    say(invocation, f"{after.setting.key}: {old} → {new}")
    if invocation.output is not OutputFormat.TABLE:
        _show(invocation, after)


def _show(invocation: Invocation, view: "SettingView") -> None:
    is_plain = invocation.output is OutputFormat.PLAIN
    emit(invocation, view.as_dict(), columns=[Column("value")] if is_plain else OBJECT)
