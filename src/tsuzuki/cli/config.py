"""`tsuzuki config`: check and show the configuration."""

import os
from dataclasses import replace
from pathlib import Path

import click

from tsuzuki.cli.application import configuration_of, warn_of_refused_collectors
from tsuzuki.cli.commands import Group
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.output import Column, emit, say, warn, write
from tsuzuki.model.errors import ConfigurationError


@click.group(cls=Group)
def config() -> None:
    """Check and show the configuration.

    \b
    tsuzuki config check
    tsuzuki config show
    tsuzuki config schema
    """


@config.command()
@click.argument("file", type=click.Path(path_type=Path), required=False)
@click.pass_obj
def check(invocation: Invocation, file: Path | None) -> None:
    """Check the configuration file and report every problem.

    FILE defaults to the file that would be used. Files that it refers to are checked too. The database
    is not opened, so the check is safe in an editor or before a commit. Exit code 3 if there are problems.

    \b
    tsuzuki config check
    tsuzuki config check jobs/tsuzuki.yaml --output json
    """
    named = replace(invocation, config_file=file) if file else invocation
    configuration = configuration_of(named, check_files=True)
    if configuration.file is None:
        raise ConfigurationError(
            "no tsuzuki.yaml in this folder or any parent folder",
            hint="Create one with: tsuzuki init",
            code="no_file",
        )
    for problem in (*configuration.refusals, *configuration.problems):
        raise problem
    count = len(configuration.jobs)
    unset = [variable.name for variable in configuration.unset_variables]
    emit(
        invocation,
        {"file": configuration.file, "jobs": count, "unset_variables": list(dict.fromkeys(unset))},
        columns=[Column("file"), Column("jobs")],
    )
    for variable in configuration.unset_variables:
        warn(invocation, f"{variable.place}: environment variable {variable.name} is not set")
    jobs = f"{count} {'job' if count == 1 else 'jobs'}"
    left = len(set(unset))
    well = (
        f"{left} {'variable is' if left == 1 else 'variables are'} not set"
        if left
        else "no problems"
    )
    say(invocation, f"{jobs}, {well}")


@config.command()
@click.pass_obj
def show(invocation: Invocation) -> None:
    """Show the effective configuration and where each value comes from.

    Precedence: flags, environment, file, defaults. Passwords are masked.
    """
    configuration = configuration_of(invocation)
    rows = [
        {"key": key, "value": value, "origin": origin}
        for key, value, origin in configuration.entries()
    ]
    folder = f"{configuration.file.parent}{os.sep}" if configuration.file else ""
    origin = Column("origin", format=lambda text: text.removeprefix(folder))
    emit(invocation, rows, columns=[Column("key"), Column("value"), origin])


@config.command()
@click.pass_obj
def schema(invocation: Invocation) -> None:
    """Print the JSON Schema of the configuration file, for editors.

    The schema includes the job types installed here. `tsuzuki init` writes it next to tsuzuki.yaml,
    whose first line names it for the YAML language server.

    \b
    tsuzuki config schema
    """
    from tsuzuki.wiring.application import file_schema

    warn_of_refused_collectors(invocation)
    write(file_schema(), ends_line=False)
