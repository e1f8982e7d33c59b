"""`tsuzuki init`: create a workspace with one working job."""

import shlex
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Command
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.model.errors import Conflict, FileUnusable, UsageError

if TYPE_CHECKING:
    from tsuzuki.services.configuration import ConfigurationView

NEXT_COMMANDS = (
    ("tsuzuki job ls", "list jobs and their next runs"),
    ("tsuzuki up", "start everything"),
    ("tsuzuki job run hello", "run the first job now"),
)


@click.command(cls=Command)
@click.option("--if-missing", is_flag=True, help="Do nothing if the file exists.")
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), required=False)
@click.pass_obj
def init(invocation: Invocation, folder: Path | None, if_missing: bool) -> None:
    """Create a workspace: a commented tsuzuki.yaml with one job, and its database.

    FOLDER defaults to the current folder and is created if needed. Also written: .env.example, which lists
    the environment variables, and tsuzuki.schema.json, which lets editors complete keys. Existing files are
    never changed.

    \b
    tsuzuki init
    tsuzuki init --if-missing /srv/jobs
    """
    file = _file_to_write(invocation, folder)
    written = _written(file, if_missing=if_missing)
    try:
        configuration = _set_up(replace(invocation, config_file=file), is_new=bool(written))
    except BaseException:
        for one in written:  # or the next try would find a file and refuse
            with suppress(OSError):
                one.unlink()
        raise
    _show(invocation, configuration)
    if written:
        _say_what_next(invocation, folder)
    else:
        say(invocation, f"{file} exists; nothing was changed.")


def _file_to_write(invocation: Invocation, folder: Path | None) -> Path:
    from tsuzuki.services.configuration import new_file

    here = invocation.cwd.absolute()
    if invocation.config_file is None:
        target = here / folder if folder else here
        return new_file(target, environ=invocation.environ, use_variable=folder is None)
    if folder:
        raise UsageError("FOLDER and --config cannot be combined", hint="Use one of them.")
    return here / invocation.config_file


def _written(file: Path, *, if_missing: bool) -> list[Path]:
    """The files that had to be written. Raises `Conflict` if a file is in the way."""
    from tsuzuki.wiring.application import write_starter

    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as problem:
        raise FileUnusable(
            f"cannot create the folder {file.parent}: {problem.strerror}",
            hint="Choose a folder you may write to.",
            code="folder_unwritable",
        ) from problem
    try:
        return write_starter(file)
    except Conflict as problem:
        if if_missing:
            return []
        raise Conflict(
            problem.message,
            hint="The file was not changed. Start it with: tsuzuki up. Or create another workspace: "
            "tsuzuki init FOLDER",
            place=problem.place,
        ) from None


def _set_up(invocation: Invocation, *, is_new: bool) -> "ConfigurationView":
    """A new file may only add its job: what else the database has is of another file."""
    with open_application(invocation) as application:
        application.jobs.apply(additions_only=is_new)
        return application.configuration


def _show(invocation: Invocation, configuration: "ConfigurationView") -> None:
    made = {
        "file": configuration.file,
        "database_url": configuration.database_url,
        "jobs": configuration.jobs,
    }
    jobs = Column("jobs", format=lambda names: ", ".join(names) or "-")
    emit(invocation, made, columns=[Column("file"), Column("database_url", "DATABASE"), jobs])


def _say_what_next(invocation: Invocation, folder: Path | None) -> None:
    steps = [*NEXT_COMMANDS]
    if folder and folder != Path():
        steps.insert(0, (f"cd {shlex.quote(str(folder))}", "change to the workspace"))
    width = max(len(command) for command, _ in steps)
    say(invocation, "")
    say(invocation, "Next:")
    for command, meaning in steps:
        say(invocation, f"  {command:<{width}}  {meaning}")
