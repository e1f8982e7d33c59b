"""Ask for confirmation before something is lost, on the terminal or by requiring `--yes`."""

import sys

import click

from tsuzuki.cli.errors import ExitWith
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.output import is_terminal, say
from tsuzuki.model.errors import UsageError
from tsuzuki.model.visible_text import neutralise

yes_option = click.option("--yes", "-y", is_flag=True, help="Skip the confirmation.")


def confirm(invocation: Invocation, action: str, *, yes: bool) -> None:
    """Return only if the `action` ("remove the job hello") is agreed to.

    Without a terminal there is no question: then it takes `--yes`.
    """
    if yes:
        return
    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        raise UsageError(
            f"confirmation required to {action}",
            hint="Nothing was changed. Add --yes to confirm.",
            code="not_confirmed",
        )
    if not click.confirm(neutralise(f"Really {action}?"), err=True):
        say(invocation, "Nothing was changed.")
        raise ExitWith(1)
