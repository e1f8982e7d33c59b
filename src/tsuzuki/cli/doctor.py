"""`tsuzuki doctor`: check everything a workspace needs, and suggest fixes."""

import platform
from collections.abc import Iterator
from importlib.metadata import version

import click

from tsuzuki.cli.application import configuration_of, open_as_it_is
from tsuzuki.cli.commands import Command
from tsuzuki.cli.errors import ExitWith
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.model.check import Check, CheckResult, fault, fault_of, ok, warning
from tsuzuki.model.errors import TsuzukiError

STYLES = {CheckResult.OK: "green", CheckResult.WARN: "yellow", CheckResult.FAIL: "bold red"}
COLUMNS = [
    Column("result", format=lambda result: f"[{result}]", style=lambda result: STYLES[result]),
    Column("what"),
    Column("found"),
]
NO_WORKSPACE_STEP = "Create a workspace with: tsuzuki init. Or try the demo: tsuzuki demo"
NEXT = Column("next", format=lambda step: step or "")


@click.command(cls=Command)
@click.pass_obj
def doctor(invocation: Invocation) -> None:
    """Check the workspace and its services, and suggest fixes.

    Checks the configuration, database, disk, clock, leader, workers, overdue runs, and whether the
    services used by enabled jobs accept our credentials (with a read-only call). Works without a database.
    The output contains no secrets, so it can be shared. Exit code 1 if a check fails.

    \b
    tsuzuki doctor
    tsuzuki doctor --output json
    """
    rows = [_row(invocation, check) for check in _checks(invocation)]
    has_steps = any(row["next"] for row in rows)
    emit(invocation, rows, columns=[*COLUMNS, *([NEXT] if has_steps else [])])
    results = [row["result"] for row in rows]
    faults, warnings = (results.count(one) for one in (CheckResult.FAIL, CheckResult.WARN))
    if invocation.output is OutputFormat.TABLE:
        say(invocation, f"{len(rows)} checks: {faults} failed, {warnings} with a warning.")
    if faults:
        raise ExitWith(1)


def _row(invocation: Invocation, check: Check) -> dict[str, object]:
    hide = invocation.hide_secrets
    return {
        "what": check.what,
        "result": check.result,
        "found": hide(check.found),
        "next": hide(check.next_step) if check.next_step else None,
    }


def _checks(invocation: Invocation) -> Iterator[Check]:
    yield ok(
        "version",
        f"Tsuzuki {version('tsuzuki')}, Python {platform.python_version()}, {platform.system()}",
    )
    try:
        yield from _configuration_checks(invocation)
    except TsuzukiError as problem:
        for one in getattr(problem, "problems", ()) or (problem,):
            yield fault_of("configuration", one)
        return
    try:
        with open_as_it_is(invocation) as application:
            if application.configuration.file is not None or application.maintenance.exists():
                yield from application.diagnosis.checks()
            else:
                yield fault("database", "not found", NO_WORKSPACE_STEP)
    except TsuzukiError as problem:
        yield fault_of("database", problem)


def _configuration_checks(invocation: Invocation) -> Iterator[Check]:
    configuration = configuration_of(invocation, check_files=True)
    if configuration.file is None:
        found = "no tsuzuki.yaml in this folder or any parent folder"
        yield warning("configuration", found, NO_WORKSPACE_STEP)
        return
    wrong = (*configuration.refusals, *configuration.problems)
    for problem in wrong:
        yield fault_of("configuration", problem)
    for variable in configuration.unset_variables:
        yield warning(
            "configuration",
            f"{variable.place}: environment variable {variable.name} is not set",
            f"Set {variable.name} where the engine runs.",
        )
    if not wrong:
        count = len(configuration.jobs)
        yield ok(
            "configuration", f"{configuration.file}, {count} {'job' if count == 1 else 'jobs'}"
        )
