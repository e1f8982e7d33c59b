"""`tsuzuki settings`: what can be tuned while everything runs."""

from typing import TYPE_CHECKING

import click

from tsuzuki.cli.application import application
from tsuzuki.cli.commands import Group
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.output import Column, emit, say
from tsuzuki.cli.words import number_words

if TYPE_CHECKING:
    from tsuzuki.services.settings import SettingView

ROW = [
    Column("key"),
    Column("value", format=number_words, align="right"),
    Column("default", format=number_words, align="right"),
    Column("updated_by", "SET BY"),
    Column("description"),
]
OBJECT = [
    Column("key"),
    Column("value", format=number_words),
    Column("default", format=number_words),
    Column("minimum", format=number_words),
    Column("maximum", format=number_words),
    Column("updated_by", "SET BY"),
    Column("updated_at", "SET AT"),
    Column("description"),
]


@click.group(cls=Group)
def settings() -> None:
    """Look at and change what can be tuned while everything runs.

    \b
    tsuzuki settings ls
    tsuzuki settings set log_retention_days_db 30
    """


@settings.command()
@click.pass_obj
def ls(invocation: Invocation) -> None:
    """List every setting with the value in force."""
    with application(invocation) as workspace:
        views = workspace.settings.find()
    emit(invocation, [view.as_dict() for view in views], columns=ROW)


@settings.command()
@click.argument("key")
@click.pass_obj
def get(invocation: Invocation, key: str) -> None:
    """Show one setting; with --output plain, only its value.

    \b
    tsuzuki settings get lease_seconds --output plain
    """
    with application(invocation) as workspace:
        view = workspace.settings.get(key)
    _show(invocation, view)


@settings.command(name="set")
@click.argument("key")
@click.argument("value")
@click.pass_obj
def set_(invocation: Invocation, key: str, value: str) -> None:
    """Change a setting; running engines take it up by themselves.

    \b
    tsuzuki settings set worker_ttl_seconds 12
    """
    with application(invocation) as workspace:
        before = workspace.settings.get(key)
        after = workspace.settings.set(key, value)
    _tell_change(invocation, before, after)


@settings.command()
@click.argument("key")
@click.pass_obj
def reset(invocation: Invocation, key: str) -> None:
    """Give a setting its default back.

    \b
    tsuzuki settings reset worker_ttl_seconds
    """
    with application(invocation) as workspace:
        before = workspace.settings.get(key)
        after = workspace.settings.reset(key)
    _tell_change(invocation, before, after)


def _tell_change(invocation: Invocation, before: "SettingView", after: "SettingView") -> None:
    old, new = number_words(before.value), number_words(after.value)
    say(invocation, f"{after.setting.key}: {old} → {new}")
    if invocation.output is not OutputFormat.TABLE:
        _show(invocation, after)


def _show(invocation: Invocation, view: "SettingView") -> None:
    is_plain = invocation.output is OutputFormat.PLAIN
    emit(invocation, view.as_dict(), columns=[Column("value")] if is_plain else OBJECT)
