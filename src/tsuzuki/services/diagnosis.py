"""Diagnosis: the checks of `tsuzuki doctor` beyond the configuration. Nothing is changed. An unavailable database
is a finding, after which only checks that do not need it are executed.
"""

import shutil
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from tsuzuki.model.check import Check, fault, fault_of, ok, warning
from tsuzuki.model.errors import ConfigurationError, Conflict, TsuzukiError, Unreachable
from tsuzuki.services.acting import ActingService
from tsuzuki.services.due import DueItems
from tsuzuki.services.explain import HELD_BY_ITS_JOB
from tsuzuki.services.jobs import Jobs
from tsuzuki.services.maintenance import Maintenance
from tsuzuki.services.runs import Runs
from tsuzuki.services.upcoming import UpcomingItem
from tsuzuki.services.workers import EngineStatus, Workers
from tsuzuki.store import failing_loops, settings
from tsuzuki.store.sql.database import Database

MEGABYTE = 1024 * 1024
DISK_FAULT_BYTES = 100 * MEGABYTE
DISK_WARNING_BYTES = 1024 * MEGABYTE
WAL_WARNING_BYTES = 100 * MEGABYTE
CLOCK_WARNING_SECONDS = 2.0
CLOCK_FAULT_SECONDS = 60.0
LATE_SECONDS = 60.0
LATE_SHOWN_MAX = 50
JOBS_SHOWN_MAX = 5
HANDLERS_SHOWN_MAX = 10


class Diagnosis(ActingService):
    """`collector_checks` gives those of all collectors; it is told whether the tables are there."""

    def __init__(  # noqa: PLR0913 -- all that is looked at
        self,
        *,
        database: Database,
        workspace: Path,
        maintenance: Maintenance,
        workers: Workers,
        due: DueItems,
        runs: Runs,
        jobs: Jobs,
        has_log_archive: bool,
        collector_checks: Callable[[bool], Iterable[Check]],
    ) -> None:
        self._database = database
        self._workspace = workspace
        self._maintenance = maintenance
        self._workers = workers
        self._due = due
        self._runs = runs
        self._jobs = jobs
        self._has_log_archive = has_log_archive
        self._collector_checks = collector_checks

    def checks(self) -> Iterator[Check]:
        """In the order in which they are best read, each as soon as it is known."""
        has_tables = True
        for check in self._database_faults():
            has_tables = False
            yield check
        if has_tables:
            yield self._writing_check()
        yield from self._disk_checks()
        if has_tables:
            try:
                yield self._clock_check()
                yield from self._engine_checks()
                yield from self._job_checks()
                yield from self._log_checks()
            except TsuzukiError as problem:
                yield fault_of("database", problem)
        yield from self._collector_checks(has_tables)

    def _database_faults(self) -> Iterator[Check]:
        try:
            self._maintenance.require_existing()
            findings = self._maintenance.check()
        except Unreachable as problem:
            yield fault_of("database", problem)
            return
        wrong = [finding for finding in findings if not finding.is_ok]
        for finding in wrong:
            yield fault(
                f"database: {finding.subject}",
                finding.problem or "integrity check failed",
                finding.hint or "tsuzuki db check",
            )

    def _writing_check(self) -> Check:
        """Of a database that is whole: whether it can be written."""
        if self._database.is_write_locked():
            return self._locked_check()
        try:
            self._maintenance.require_writable()
        except TsuzukiError as problem:
            return fault_of("database", problem)
        kind = "SQLite" if self._database.is_sqlite else "PostgreSQL"
        return ok("database", f"reachable, integrity ok ({kind})")

    def _locked_check(self) -> Check:
        holder = self._maintenance.lock_holder()
        found = f"{holder or 'another process'} holds the write lock"
        if holder is not None and holder.since is not None:
            seconds = (self._database.clock.now() - holder.since).total_seconds()
            found += f" for {seconds:.0f} s"
        step = "Wait for that process, or check what it is doing."
        return warning("database", f"{found}; no other process can write", step)

    def _disk_checks(self) -> Iterator[Check]:
        """Free space where the database file and the workspace are; one line for each file system."""
        folders = [self._workspace]
        if self._database.path is not None:
            folders.insert(0, self._database.path.parent)
        seen: set[int] = set()
        for folder in folders:
            try:
                device, usage = folder.stat().st_dev, shutil.disk_usage(folder)
            except OSError as problem:
                yield fault(
                    "disk",
                    f"{folder}: {problem.strerror}",
                    "Make the folder accessible to this user.",
                )
                continue
            if device not in seen:
                seen.add(device)
                yield _disk_check(folder, usage.free)
        if self._database.wal_bytes:
            yield _wal_check(self._database.wal_bytes)

    def _clock_check(self) -> Check:
        with self._database.read() as connection:
            there = self._database.now(connection)
        apart = (there - self._database.clock.now()).total_seconds()
        step = "Synchronize the clocks of both machines with NTP."
        if abs(apart) > CLOCK_FAULT_SECONDS:
            return fault(
                "clock", f"the database's clock differs from this one by {apart:+.1f} s", step
            )
        if abs(apart) > CLOCK_WARNING_SECONDS:
            return warning(
                "clock", f"the database's clock differs from this one by {apart:+.1f} s", step
            )
        return ok("clock", f"{abs(apart):.1f} s apart from the database")

    def _engine_checks(self) -> Iterator[Check]:
        status = self._workers.status()
        yield _leader_check(status)
        yield from _worker_checks(status)
        yield from self._loop_checks()
        yield from _handler_checks(status)
        yield self._due_check(status)

    def _loop_checks(self) -> Iterator[Check]:
        with self._database.read() as connection:
            failing = failing_loops.find(connection)
        for process, failure in failing:
            yield fault(
                "loops",
                f"{failure.loop} of {process} failed {failure.failures} times in a row: "
                f"{failure.error}",
                "Check the log of that process.",
            )

    def _due_check(self, status: EngineStatus) -> Check:
        items = self._due.upcoming.find(limit=LATE_SHOWN_MAX, with_paused=True)
        due = [one for one in items if (status.at - one.due_at).total_seconds() > LATE_SECONDS]
        if not due:
            return ok("due work", "no overdue runs")
        late = [item for item in due if item.cause not in HELD_BY_ITS_JOB]
        if not late:
            found = f"{_due_words(due, status)}: the job is disabled or at its own limit"
            return warning("due work", found, f"See: tsuzuki run explain {due[0].run_id}")
        found = _due_words(late, status)
        if late[0].run_id is None:
            return fault("due work", found, "Start an engine with: tsuzuki up")
        return fault(
            "due work", found, f"See the reason with: tsuzuki run explain {late[0].run_id}"
        )

    def _log_checks(self) -> Iterator[Check]:
        """Without an archive no log leaves the database, whatever the setting is."""
        if self._has_log_archive:
            return
        with self._database.read() as connection:
            days = settings.load(connection).log_retention_days_db
        yield warning(
            "logs",
            f"log_retention_days_db ({days} days) has no effect because log_archive is not "
            "set: logs stay in the database until their runs are deleted",
            "Set log_archive in tsuzuki.yaml to a folder shared by all machines, or to s3://…",
        )

    def _job_checks(self) -> Iterator[Check]:
        """What a change of the file has not brought into the database yet."""
        try:
            changes = self._jobs.apply(dry_run=True)
        except ConfigurationError:
            return  # told with the configuration
        except Conflict as problem:
            yield fault_of("jobs", problem)
            return
        if changes:
            names = ", ".join(change.name for change in changes[:JOBS_SHOWN_MAX])
            more = len(changes) - JOBS_SHOWN_MAX
            found = f"the file and the database differ: {names}"
            yield warning(
                "jobs",
                f"{found} and {more} more" if more > 0 else found,
                "See the differences with: tsuzuki job apply --dry-run. Apply them with: tsuzuki "
                "job apply",
            )


def _due_words(items: Sequence[UpcomingItem], status: EngineStatus) -> str:
    count = f"{len(items)}{'+' if len(items) == LATE_SHOWN_MAX else ''}"
    seconds = (status.at - items[0].due_at).total_seconds()
    return f"{count} overdue; {items[0].job} by {seconds:.0f} s"


def _disk_check(folder: Path, free_bytes: int) -> Check:
    found = f"{free_bytes / MEGABYTE / 1024:.1f} GiB free at {folder}"
    if free_bytes < DISK_FAULT_BYTES:
        return fault("disk", found, "Free some disk space soon, or nothing more can be stored.")
    if free_bytes < DISK_WARNING_BYTES:
        return warning("disk", found, "Free some disk space.")
    return ok("disk", found)


def _wal_check(wal_bytes: int) -> Check:
    found = f"the database's write-ahead log has {wal_bytes / MEGABYTE:.1f} MiB"
    if wal_bytes <= WAL_WARNING_BYTES:
        return ok("log", found)
    step = (
        "A long-running reader prevents it from shrinking: end programs that keep the "
        "database open for reading."
    )
    return warning("log", found, step)


def _leader_check(status: EngineStatus) -> Check:
    if not status.is_led or status.lease is None:
        return warning(
            "leader", "there is no leader, so no runs are started", "Start one with: tsuzuki up"
        )
    lead = status.leadership
    found = f"{lead.holder}, epoch {lead.epoch}, lease ends in {status.lease.left_seconds:.0f} s"
    return ok("leader", found)


def _handler_checks(status: EngineStatus) -> Iterator[Check]:
    """Jobs whose runs wait because no live worker can execute them."""
    for missing in status.missing_handlers[:HANDLERS_SHOWN_MAX]:
        yield fault("handlers", f"{missing.job}: {missing.sentence}", str(missing.hint))
    if (more := len(status.missing_handlers) - HANDLERS_SHOWN_MAX) > 0:
        yield fault("handlers", f"{more} more jobs wait for a worker", "See: tsuzuki run explain")


def _worker_checks(status: EngineStatus) -> Iterator[Check]:
    silent = [view for view in status.workers if status.is_silent(view)]
    for view in silent:
        heard = (
            "before the clock was set back"
            if view.silent_seconds is None
            else f"{view.silent_seconds:.0f} s ago"
        )
        yield warning(
            "workers",
            f"{view.worker.id} on {view.worker.host} was last seen {heard}",
            f"Check that process, or detach the worker: tsuzuki worker detach {view.worker.id}",
        )
    if status.usable:
        held = sum(view.held for view in status.usable)
        found = f"{len(status.usable)} with {status.slots} slots, {held} in use"
        yield ok("workers", found)
    elif not silent:
        yield warning(
            "workers", "no worker is running", "Start one with: tsuzuki up, or: tsuzuki worker"
        )
