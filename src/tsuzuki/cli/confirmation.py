"""Before something is lost, the person agrees: with `--yes`, or when asked at a terminal."""

import sys

import click

from tsuzuki.cli.failures import ExitWith
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import is_terminal, say
from tsuzuki.cli.values import neutralise
from tsuzuki.model.errors import UsageError

yes_option = click.option("--yes", "-y", is_flag=True, help="Do it without asking.")


def confirm(invocation: Invocation, deed: str, *, yes: bool) -> None:
    """Return only if the `deed` ("remove the job hello") is agreed to.

    Without a terminal nobody is asked: then it takes `--yes`.
    """
    if yes:
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError(
            f"this would {deed}, so it needs --yes",
            hint="Nothing was changed. Say it again with --yes if you mean it.",
            code="not_confirmed",
        )
    if not click.confirm(neutralise(f"Really {deed}?"), err=True):
        say(invocation, "Nothing was changed.")
        raise ExitWith(1)
