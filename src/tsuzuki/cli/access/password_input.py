"""Read a password from the terminal without echo, or from the first line of stdin. A password is never an argument,
because other users of the machine can read arguments.
"""

import sys

import click

from tsuzuki.cli.terminal.output import is_terminal
from tsuzuki.model.errors import UsageError

_LINE_MAX = 10_000

password_stdin_option = click.option(
    "--password-stdin", is_flag=True, help="Read the password from the first line of stdin."
)


def read_password(*, from_stdin: bool, prompt: str = "Password") -> str:
    """A new password. At the terminal it is typed twice."""
    if from_stdin:
        return _first_line()
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError(
            "cannot ask for a password: no terminal",
            hint="Use --password-stdin.",
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
        raise click.UsageError(f"the password must have at least {LENGTH_MIN} characters")
    return typed


def _first_line() -> str:
    try:
        line = sys.stdin.readline(_LINE_MAX)
    except UnicodeDecodeError:
        raise UsageError(
            "the password on stdin is not valid UTF-8", code="password_refused"
        ) from None
    password = line.removesuffix("\n").removesuffix("\r")
    if not password:
        raise UsageError(
            "no password on stdin",
            hint="For example: pass show tsuzuki | tsuzuki user passwd ada --password-stdin",
            code="password_missing",
        )
    return password
