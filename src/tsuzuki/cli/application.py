"""Find and open the application that a command works on, starting from the current folder.

Reading commands create nothing: without a file and a database, a command reports an error instead of leaving a
stray database behind.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, TypeVar

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.root import COMMANDS
from tsuzuki.cli.terminal.lock_notice import noticing_lock_waits
from tsuzuki.cli.terminal.output import say, warn
from tsuzuki.model.errors import TsuzukiError

if TYPE_CHECKING:
    from tsuzuki.services.configuration import ConfigurationView
    from tsuzuki.services.job_changes import JobSyncChange
    from tsuzuki.services.maintenance import Upgrade
    from tsuzuki.services.reader import Reader
    from tsuzuki.wiring.application import Application

Answer = TypeVar("Answer")
APPLIED_SHOWN_MAX = 5


def ask(
    invocation: Invocation,
    question: "Callable[[Application | Reader], Answer]",
    *,
    dry_run: bool = False,
    needs_file: bool = True,
) -> "Answer":
    """The answer to a question that changes nothing. A reader that starts fast is asked first; where it cannot
    answer, the application does, and says what is wrong. With `dry_run` not even the tables are upgraded. Unless it
    `needs_file`, a mistake in the file is a warning."""
    from tsuzuki.wiring.reader import CannotRead, opened_reader

    try:
        with opened_reader(**invocation.sources) as reader:
            return question(reader)
    except (CannotRead, TsuzukiError):
        pass
    with open_application(invocation, dry_run=dry_run, needs_file=needs_file) as application:
        answer = question(application)
        application.keep_for_reader()
        return answer


@contextmanager
def open_application(
    invocation: Invocation,
    *,
    dry_run: "bool | Callable[[Application], bool]" = False,
    needs_file: bool = True,
) -> "Iterator[Application]":
    """Everything joined, and the database at this version; a `dry_run` does not bring it there. A command that reads
    only the database does not need the file: it warns of mistakes in it."""
    with (
        open_existing(invocation, needs_file=needs_file) as application,
        noticing_lock_waits(invocation, application.maintenance),
    ):
        if (file := application.maintenance.snapshot_of) is not None:
            warn(invocation, f"{file} is read-only: changes made in the meantime are not shown")
        if dry_run(application) if callable(dry_run) else dry_run:
            application.maintenance.require_existing()
            with _warning_of_new_refusals(invocation, application):
                application.maintenance.require_current()
        else:
            upgrade_tables(invocation, application)
        yield application


def apply_file(invocation: Invocation, application: "Application") -> None:
    """Bring the jobs of the file into the database, and say so if they were not there."""
    for line in lines_of_changes(application.jobs.apply()):
        say(invocation, line)


def lines_of_changes(changes: "Sequence[JobSyncChange]") -> list[str]:
    """What was applied, and apart from it what was removed: with another file by mistake, those are all jobs."""
    removed = [change.name for change in changes if change.after is None]
    applied = [change.name for change in changes if change.after is not None]
    lines = [f"Applied changes from the file: {_listed(applied)}."] if applied else []
    if removed:
        lines.append(f"Deleted jobs that are no longer in the file: {_listed(removed)}.")
    return lines


def _listed(names: "Sequence[str]") -> str:
    more = f" and {len(names) - APPLIED_SHOWN_MAX} more" if len(names) > APPLIED_SHOWN_MAX else ""
    return ", ".join(names[:APPLIED_SHOWN_MAX]) + more


def upgrade_tables(invocation: Invocation, application: "Application") -> "list[Upgrade]":
    """Bring the database to this version, and warn of each collector that it was not possible for."""
    with _warning_of_new_refusals(invocation, application):
        return application.maintenance.upgrade()


@contextmanager
def open_existing(invocation: Invocation, *, needs_file: bool = True) -> "Iterator[Application]":
    """Everything joined in a workspace that exists, and the database as it is."""
    from tsuzuki.wiring.application import require_workspace

    with open_as_it_is(invocation, needs_file=needs_file) as application:
        require_workspace(application)
        yield application


@contextmanager
def open_as_it_is(invocation: Invocation, *, needs_file: bool = True) -> "Iterator[Application]":
    """Everything joined, and the database as it is: of another version, or not there."""
    from tsuzuki.wiring.application import opened

    warn_of_refused_collectors(invocation)
    with opened(**invocation.sources, migrate=False, locations_only=not needs_file) as application:
        invocation.masks.append(application.mask)
        if (problem := application.configuration.file_problem) is not None:
            warn(invocation, f"{problem.place}: {problem.message}. See: tsuzuki config check")
        yield application


def configuration_of(invocation: Invocation, *, check_files: bool = False) -> "ConfigurationView":
    """What file, environment and flags say. No database is touched."""
    from tsuzuki.wiring.application import read_configuration

    warn_of_refused_collectors(invocation)
    return read_configuration(**invocation.sources, check_files=check_files)


@contextmanager
def _warning_of_new_refusals(invocation: Invocation, application: "Application") -> Iterator[None]:
    known = {*application.refused_collectors}
    yield
    for name, problem in application.refused_collectors.items():
        if name not in known:
            warn(invocation, problem.message)


def warn_of_refused_collectors(invocation: Invocation) -> None:
    """Before anything else: what follows may fail because one is missing."""
    from tsuzuki.wiring.collectors import installed_collectors

    installed = installed_collectors()
    for problem in installed.problems:
        warn(invocation, problem.message)
    for name, collector in installed.usable.items():
        for command in sorted({*collector.commands} & {*COMMANDS}):
            warn(
                invocation,
                f"command {command!r} of the collector {name!r} is hidden by the built-in command "
                "of that name",
            )
