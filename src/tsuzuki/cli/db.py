"""`tsuzuki db`: upgrade, check, back up and restore the database."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from tsuzuki.cli.application import open_as_it_is, upgrade_tables
from tsuzuki.cli.commands import Group
from tsuzuki.cli.errors import ExitWith
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.formatting import format_size
from tsuzuki.cli.terminal.output import Column, emit, say

if TYPE_CHECKING:
    from tsuzuki.services.maintenance import Finding

SUBJECT = Column("subject")
RESULT = Column(
    "ok",
    "RESULT",
    format=lambda ok: "ok" if ok else "FAIL",
    style=lambda ok: "green" if ok else "bold red",
)


@click.group(cls=Group)
def db() -> None:
    """Upgrade, check, back up and restore the database.

    \b
    tsuzuki db check
    tsuzuki db backup /srv/backups/tsuzuki.db
    """


@db.command()
@click.pass_obj
def upgrade(invocation: Invocation) -> None:
    """Create the database's tables, or upgrade them to this version.

    Every command that needs the database does this automatically; run it yourself to make it a separate
    step of a release. Repeating it changes nothing.
    """
    with open_as_it_is(invocation) as application:
        upgrades = upgrade_tables(invocation, application)
    emit(
        invocation,
        [
            {
                "component": upgrade.component,
                "before": upgrade.before,
                "after": upgrade.after,
                "changed": upgrade.changed,
            }
            for upgrade in upgrades
        ],
        columns=[Column("component"), Column("before"), Column("after")],
    )
    if not any(upgrade.changed for upgrade in upgrades):
        say(invocation, "The database was already up to date.")


@db.command()
@click.pass_obj
def check(invocation: Invocation) -> None:
    """Check database integrity (read-only).

    Exit code 1 if the database is damaged, 5 if there is none.
    """
    with open_as_it_is(invocation) as application:
        application.maintenance.require_existing()
        findings = application.maintenance.check()
    all_well = all(finding.is_ok for finding in findings)
    emit(
        invocation,
        [_row(finding) for finding in findings],
        columns=[SUBJECT, RESULT, *([] if all_well else [Column("problem"), Column("hint")])],
    )
    if not all_well:
        raise ExitWith(1)


@db.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False), required=False)
@click.pass_obj
def backup(invocation: Invocation, file: Path | None) -> None:
    """Back up the database while it is in use.

    FILE must not exist. By default, the backup is created next to the database, with the time in its
    name. The backup of an SQLite database is an SQLite file; that of PostgreSQL is a dump for pg_restore.

    \b
    tsuzuki db backup
    tsuzuki db backup /srv/backups/tsuzuki.db
    """
    target = invocation.cwd.absolute() / file if file else None
    with open_as_it_is(invocation) as application:
        copy = application.maintenance.back_up(target)
    emit(
        invocation,
        copy,
        columns=[Column("path", "BACKUP"), Column("size_bytes", "SIZE", format=format_size)],
    )


@db.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
@click.pass_obj
def restore(invocation: Invocation, file: Path) -> None:
    """Replace the SQLite database with a backup.

    Refused while a process uses the database. The old database is kept next to the new one.

    \b
    tsuzuki db restore /srv/backups/tsuzuki.db
    """
    with open_as_it_is(invocation) as application:
        restored = application.maintenance.restore(invocation.cwd.absolute() / file)
    emit(
        invocation,
        restored,
        columns=[Column("path", "RESTORED"), Column("kept", "OLD DATABASE")],
    )


def _row(finding: "Finding") -> dict[str, object]:
    return {
        "subject": finding.subject,
        "ok": finding.is_ok,
        "problem": finding.problem,
        "hint": finding.hint,
    }
