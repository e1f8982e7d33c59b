"""How a password comes in: typed at the terminal without being shown, or as the first line of stdin. Never as an
argument, which other users of the machine can read."""

import sys

import click

from tsuzuki.cli.terminal.output import is_terminal
from tsuzuki.model.errors import UsageError

_LINE_MAX = 10_000

password_stdin_option = click.option(
    "--password-stdin", is_flag=True, help="Read the password from stdin, its first line."
)


def read_password(*, from_stdin: bool, prompt: str = "Password") -> str:
    """A new password. At the terminal it is typed twice."""
    if from_stdin:
        return _first_line()
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError(
            "a password is asked for at a terminal, and this is none",
            hint="Give it on stdin with --password-stdin.",
            code="password_missing",
        )
    typed: str = click.prompt(
        prompt, hide_input=True, confirmation_prompt=True, err=True, value_proc=_long_enough
    )
    return typed


def _long_enough(typed: str) -> str:
    """A shorter one is told at once, and asked for again."""
    from tsuzuki.services.access.passwords import LENGTH_MIN

    if len(typed) < LENGTH_MIN:
        raise click.UsageError(f"a password has {LENGTH_MIN} characters or more")
    return typed


def _first_line() -> str:
    try:
        line = sys.stdin.readline(_LINE_MAX)
    except UnicodeDecodeError:
        raise UsageError(
            "the password on stdin is not UTF-8 text", code="password_refused"
        ) from None
    password = line.removesuffix("\n").removesuffix("\r")
    if not password:
        raise UsageError(
            "there is no password on stdin",
            hint="For example: pass show tsuzuki | tsuzuki user passwd ada --password-stdin",
            code="password_missing",
        )
    return password
