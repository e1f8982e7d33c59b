"""Jobs: definitions in the file and in the database, and keeping the two in sync.

A job in the file is changed in the file, and the database follows; a job in the database is changed there. In both
cases, the change and its audit entry are one transaction.
"""

import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

from tsuzuki.config import (
    Changes,
    ConfigEditor,
    Configuration,
    JobKind,
    Key,
    body_of,
    body_text,
    parse_job,
    parse_value,
    patched,
    problem_at,
)
from tsuzuki.config.schema.job_keys import COMMON_KEYS, INNER_KEYS
from tsuzuki.config.schema.job_kinds import with_built_in
from tsuzuki.model.errors import (
    ConfigurationError,
    Conflict,
    FilePlace,
    UsageError,
    VersionMismatch,
)
from tsuzuki.model.job import Job, JobSource, JobSpec
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.services import job_changes
from tsuzuki.services.acting import ActingService
from tsuzuki.services.job_changes import JobSyncChange
from tsuzuki.services.job_views import JobView, LastEnd, SyncState, view_of, views_of
from tsuzuki.services.lookup import job_unknown, require_job
from tsuzuki.services.lost_functions import disable_lost
from tsuzuki.services.presence import missing_here
from tsuzuki.store import jobs
from tsuzuki.store.runs import recent_runs
from tsuzuki.store.sql.database import Connection, Database

__all__ = ["JobView", "Jobs", "SyncState", "definition_text", "parse_key_value", "parse_mapping"]


KNOWN_MAX = 5_000
"""How many jobs are kept as they were read last."""


class _LastRead:
    """Jobs by id: one that has not changed since is not parsed again. Shared by all threads and actors."""

    jobs: Mapping[int, Job] = jobs.NONE_KNOWN


class Jobs(ActingService):
    """`reload` reads the configuration again: the file may have changed since."""

    def __init__(
        self,
        *,
        database: Database,
        reload: Callable[[], Configuration],
        kinds: Mapping[str, JobKind],
        actor: str,
        built_in: Collection[str] = (),
    ) -> None:
        """`built_in` are the names of jobs of our own."""
        self._database = database
        self._built_in = built_in
        self._reload = reload
        self._kinds = kinds
        self._actor = actor
        self._last_read = _LastRead()

    def find(self) -> list[JobView]:
        """Every job of the file and of the database, by name."""
        configuration = self._reload()
        with self._database.read() as connection:
            stored = jobs.find(connection, known=self._last_read.jobs)
        self._last_read.jobs = {job.id: job for job in stored[:KNOWN_MAX]}
        refused = {job.name for job in configuration.refused_jobs}
        return views_of(
            configuration.jobs,
            stored,
            refused=refused,
            built_in=self._built_in,
            now=self._database.clock.now(),
        )

    def last_ends(self) -> dict[str, LastEnd]:
        """How the newest run that has ended did so, by job."""
        with self._database.read() as connection:
            names = jobs.names_by_id(connection)
            ended = recent_runs.newest_ended(connection, sorted(names), limit=1)
        return {
            names[job_id]: LastEnd(
                run_id=run.id,
                outcome=run.outcome,
                finished_at=run.finished_at,
            )
            for job_id, found in ended.items()
            for run in found
        }

    def find_by_handler(self, handler: str) -> list[JobView]:
        """Those of one handler. The others are not read: there may be thousands."""
        configuration = self._reload()
        of_file = {spec.name: spec for spec in configuration.jobs}
        named = [name for name, spec in of_file.items() if spec.handler == handler]
        with self._database.read() as connection:
            stored = jobs.find_by_handler(connection, handler, named)
        names = {*named, *(job.spec.name for job in stored)}
        views = views_of(
            [spec for name, spec in of_file.items() if name in names],
            stored,
            refused={job.name for job in configuration.refused_jobs},
            now=self._database.clock.now(),
        )
        return [view for view in views if view.spec.handler == handler]

    def names(self) -> list[str]:
        """Of the jobs that are stored. Nothing else of them is read: there may be thousands."""
        with self._database.read() as connection:
            return jobs.names(connection)

    def get(self, name: str) -> JobView:
        """One job. The others are not read: there may be thousands."""
        configuration = self._reload()
        with self._database.read() as connection:
            stored = jobs.find_by_name(connection, [name])
        views = views_of(
            [spec for spec in configuration.jobs if spec.name == name],
            stored.values(),
            refused={job.name for job in configuration.refused_jobs},
            now=self._database.clock.now(),
        )
        if not views:
            raise job_unknown(name, [view.name for view in self.find()])
        return views[0]

    def next_times(self, name: str, count: int) -> list[datetime]:
        """When a job will be due next, if it stays as it is."""
        view = self.get(name)
        if view.spec.schedule is None:
            raise Conflict(
                f"job {name!r} has no schedule",
                hint=f"It runs {view.schedule_words}. Add a schedule with: tsuzuki job update {name} "
                "--schedule …",
                code="no_schedule",
            )
        return view.spec.next_due(self._database.clock.now(), count)

    def add(self, name: str, values: Changes, *, dry_run: bool = False) -> JobView:
        """Write a new job with these keys into the file and apply it; or only return what would be
        there."""
        body = patched({}, values)
        if dry_run:
            with self._database.read() as connection:
                editor = self._editor(connection, name)
            return self._view(editor.add_job(name, body, dry_run=True), None)
        with self._editing(name) as editor:
            editor.add_job(name, body)
        return self.get(name)

    def update(
        self,
        name: str,
        changes: Changes,
        *,
        removals: Collection[Key] = (),
        version: int | None = None,
        dry_run: bool = False,
    ) -> JobView:
        """Change some of a job's keys, as they are written in the file; or only return what would
        be there. Raises `VersionMismatch` if a `version` is given and the job is at another one by now, or was changed
        in the file since that was applied."""
        self._refuse_unknown_keys(removals)
        view = self.get(name)
        if view.source is JobSource.DATABASE:
            raise Conflict(
                f"job {name!r} is not in the file; it was created through the API",
                hint="Change it where it was created, or disable it with: tsuzuki job disable",
                code="job_source",
            )
        if dry_run:
            with self._database.read() as connection:
                editor = self._editor(connection, name)
            spec = editor.update_job(name, changes, removals, dry_run=True)
            return self._view(spec, view.job)
        with self._editing(name, version=version) as editor:
            editor.update_job(name, changes, removals)
        return self.get(name)

    def missing_here(self, spec: JobSpec, environ: Mapping[str, str]) -> str | None:
        """The program or function of the job that does not exist on this machine; None if it does."""
        return missing_here(spec, workspace=self._reload().workspace, environ=environ)

    def set_enabled(self, name: str, enabled: bool) -> JobView:
        view = self.get(name)
        if view.source is JobSource.FILE:
            with self._editing(name) as editor:
                editor.set_enabled(name, enabled)
            return self.get(name)
        with self._database.write() as connection:
            job_changes.set_enabled(connection, name, enabled, actor=self._actor)
        return self.get(name)

    def remove(self, name: str) -> None:
        """Remove a job where it is defined. Its runs and their history stay."""
        view = self.get(name)
        is_in_file = view.source is JobSource.FILE and view.sync_state is not SyncState.GONE
        with self._database.write() as connection:
            if is_in_file:
                jobs.hold(connection)
                jobs.require_writable(connection)
                ConfigEditor(self.require_file(), kinds=self._kinds).remove_job(name)
            job_changes.remove(connection, name, actor=self._actor)

    def create(self, name: str, body: Mapping[str, Any]) -> JobView:
        """Make a job that lives in the database only. Raises `Conflict` if the name is taken."""
        self._refuse_file_job(name)
        spec = self._parse(name, body)
        with self._database.write() as connection:
            job_changes.create(connection, spec, actor=self._actor)
        return self.get(name)

    def edit(self, name: str, body: Mapping[str, Any], *, version: int | None) -> JobView:
        """Replace the definition of a job of the database, if it still has this version; None: any. Raises
        `VersionMismatch`, and `Conflict` with file and line for a job of the file."""
        self.get(name)
        self._refuse_file_job(name)
        spec = self._parse(name, body)
        with self._database.write() as connection:
            job_changes.edit(connection, spec, version=version, actor=self._actor)
        return self.get(name)

    def body(self, name: str) -> dict[str, Any]:
        """The definition of a job with the keys of the file; those that have their default are left out."""
        return body_of(self.get(name).spec, kinds=self._kinds)

    def schedule_text(self, name: str) -> str:
        """The schedule of a job on one line, to be read again as YAML; empty without one."""
        document = self._reload().document
        written = ((document.data or {}).get("jobs") or {}).get(name) if document else None
        schedule = (written or self.body(name)).get("schedule")
        if schedule is None:
            return ""
        if isinstance(schedule, str) and _reads_as_itself(schedule):
            return schedule
        return json.dumps(schedule, ensure_ascii=False, default=str)

    def preview(self, name: str, body: Mapping[str, Any]) -> JobView:
        """The job that a definition would make. Nothing is stored. Raises `ConfigurationError`."""
        return self._view(self._parse(name, body), None)

    def kinds_to_add(self) -> dict[str, JobKind]:
        """Of the kinds with questions, each by its name."""
        return {name: kind for name, kind in self._kinds.items() if kind.questions}

    def problem_at(
        self, name: str, values: Changes, key: tuple[str, ...]
    ) -> ConfigurationError | None:
        """What is wrong with one key of a job that is being made; with an empty key, with its name."""
        return problem_at(name, patched({}, values), key, kinds=self._kinds)

    def place(self, name: str) -> FilePlace | None:
        """Where a job stands in the file; None if it is not in it."""
        return self._reload().place_of_job(name)

    def discard(self, name: str, *, version: int | None) -> None:
        """Remove a job of the database, if it still has this version; None: any. Its runs stay."""
        self.get(name)
        self._refuse_file_job(name)
        with self._database.write() as connection:
            job_changes.remove(connection, name, version=version, actor=self._actor)

    def define(self, name: str, body: Mapping[str, Any]) -> JobView:
        """Make or change a job that lives in the database only."""
        self.define_many({name: body})
        return self.get(name)

    def define_many(self, bodies: Mapping[str, Mapping[str, Any]]) -> None:
        """Make or change jobs that live in the database only, all or none. Without a change no lock is taken."""
        specs = self._parsed(bodies)
        if self._is_to_define(specs):
            with self._database.write() as connection:
                job_changes.define(connection, specs, actor=self._actor)

    def define_for(self, connection: Connection, bodies: Mapping[str, Mapping[str, Any]]) -> bool:
        """Make or change jobs for a caller's open transaction, in a transaction of our own: others who define jobs
        must not wait until the caller commits. False if that is impossible and they became part of the caller's
        transaction."""
        specs = self._parsed(bodies)
        if not self._is_to_define(specs):
            return True
        if self._database.can_commit_beside(connection):
            with self._database.write() as own:
                job_changes.define(own, specs, actor=self._actor)
            return True
        self._database.adopt(connection)
        job_changes.define(connection, specs, actor=self._actor)
        return False

    def _is_to_define(self, specs: Sequence[JobSpec]) -> bool:
        with self._database.read() as connection:
            return bool(job_changes.to_define(connection, specs))

    def disable_lost(self, is_lost: Callable[[JobSpec], bool]) -> list[str]:
        """Disable the jobs whose function is gone from the code, unless a live worker has it. Answers their names."""
        return disable_lost(self._database, is_lost, actor=self._actor)

    def check(self, name: str, body: Mapping[str, Any]) -> None:
        """Raises `ConfigurationError` if a definition is wrong, without a look at file or database."""
        parse_job(name, body, kinds=self._kinds)

    def _parse(self, name: str, body: Mapping[str, Any]) -> JobSpec:
        return self._parsed({name: body})[0]

    def _refuse_file_job(self, name: str) -> None:
        """A job of the file is changed in the file."""
        with self._database.read() as connection:
            stored = jobs.get_by_name(connection, name)
        place = self._reload().place_of_job(name)
        if place is None and (stored is None or stored.source is JobSource.DATABASE):
            return
        raise Conflict(
            f"job {name!r} is defined in the file",
            hint="Change it in the file, then apply it with: tsuzuki job apply",
            place=place,
            code="job_source",
        )

    def _parsed(self, bodies: Mapping[str, Mapping[str, Any]]) -> list[JobSpec]:
        timezone = self._reload().timezone
        return [
            parse_job(name, body, kinds=self._kinds, default_timezone=timezone)
            for name, body in bodies.items()
        ]

    def apply(
        self,
        *,
        dry_run: bool = False,
        additions_only: bool = False,
        of_kinds: Collection[str] | None = None,
    ) -> list[JobSyncChange]:
        """Make the database hold what the file says. Returns what changed (or would). Raises
        `ConfigurationError` if an enabled job is of a refused kind; a disabled one stays as it is. With
        `additions_only` raises `Conflict` if a job that is stored would be changed or removed. With `of_kinds` only
        jobs of these kinds are added or changed, and none is removed."""
        if self._reload().file is None:
            return []
        if dry_run:
            with self._database.read() as connection:
                return self._changes(connection, of_kinds)
        with self._database.write() as connection:
            jobs.hold(connection)
            changes = self._changes(connection, of_kinds)
            if additions_only:
                job_changes.refuse_loss(changes)
            job_changes.carry_out(connection, changes, source=JobSource.FILE, actor=self._actor)
            return changes

    def has_in_file(self, kinds: Collection[str]) -> bool:
        """Whether the file has a job of one of these kinds."""
        return any(spec.handler in kinds for spec in self._reload().jobs)

    def _changes(
        self, connection: Connection, of_kinds: Collection[str] | None = None
    ) -> list[JobSyncChange]:
        """What must happen so that the database holds what the file says. The file is read here: for a
        change while definitions are held, or an older reading could undo a newer one."""
        configuration = self._reload()
        for job in configuration.refused_jobs:
            if job.enabled:
                raise job.problem
        refused = {job.name for job in configuration.refused_jobs}
        stored = [job for job in jobs.find(connection) if job.spec.name not in refused]
        changes = job_changes.plan(stored, configuration.jobs)
        if of_kinds is None:
            return changes
        return [one for one in changes if one.after and one.after.handler in of_kinds]

    def _refuse_unknown_keys(self, keys: Collection[Key]) -> None:
        """A misspelt key that is to be removed would do nothing, without a word."""
        kinds = with_built_in(self._kinds).values()
        known = COMMON_KEYS.union(*(kind.keys for kind in kinds))
        for key in keys:
            path = (key,) if isinstance(key, str) else key
            for word, allowed in zip(path, (known, INNER_KEYS.get(path[0])), strict=False):
                if allowed is not None and word not in allowed:
                    written = ".".join(path)
                    raise UsageError(
                        f"unknown job key '{written}'",
                        hint=did_you_mean(word, allowed)
                        + f"Known keys: {', '.join(sorted(allowed))}.",
                        code="unknown_key",
                    )

    @contextmanager
    def _editing(self, name: str, *, version: int | None = None) -> Iterator[ConfigEditor]:
        """For a change of this job in the file, which is applied on leaving. The database is taken for writing
        before: one that is locked or read-only refuses while the file is as it was."""
        with self._database.write() as connection:
            jobs.hold(connection)
            jobs.require_writable(connection)
            if version is not None:
                self._check_unchanged(connection, name, version)
            yield self._editor(connection, name)
            changes = self._changes(connection)
            job_changes.carry_out(connection, changes, source=JobSource.FILE, actor=self._actor)

    def _check_unchanged(self, connection: Connection, name: str, version: int) -> None:
        job_changes.check_version(require_job(connection, name), version)
        if any(change.name == name for change in self._changes(connection)):
            raise VersionMismatch(
                f"job {name!r} changed in the file since it was last applied",
                hint="Apply the file, check the job, and repeat the change if you still want it.",
            )

    def _editor(self, connection: Connection, name: str) -> ConfigEditor:
        """For the file, if all it says can be applied, and this job too: or an edit would be made and then
        refused."""
        file = self.require_file()
        stored = jobs.get_by_name(connection, name)
        if stored is not None and stored.source is JobSource.DATABASE:
            raise job_changes.taken(name)
        self._changes(connection)
        return ConfigEditor(file, kinds=self._kinds)

    def require_file(self) -> Path:
        """The file the jobs are written in. Raises `ConfigurationError` if there is none."""
        file = self._reload().file
        if file is None:
            raise ConfigurationError(
                "no tsuzuki.yaml in this folder or any parent folder",
                hint="Create one with: tsuzuki init",
                code="no_file",
            )
        return file

    def _view(self, in_file: JobSpec | None, stored: Job | None) -> JobView:
        return view_of(in_file, stored, now=self._database.clock.now())


def _reads_as_itself(text: str) -> bool:
    try:
        return bool(parse_value(text, name="schedule") == text)
    except ConfigurationError:
        return False


def parse_key_value(key: str, text: str) -> Any:
    """The value of a key, written as in the file. Raises `UsageError`."""
    try:
        return parse_value(text, name=f"--set {key}")
    except ConfigurationError as problem:
        raise UsageError(problem.message, hint=problem.hint, place=problem.place) from problem


def definition_text(body: Mapping[str, Any]) -> str:
    """A definition as it is written in the file."""
    return body_text(body)


def parse_mapping(text: str, *, name: str) -> dict[str, Any]:
    """Keys and values, written as in the file or as JSON; nothing written is no key. Raises `UsageError`."""
    try:
        found = parse_value(text, name=name) if text.strip() else {}
    except ConfigurationError as problem:
        raise UsageError(
            f"cannot parse {name}: {problem.message}", hint=problem.hint, place=problem.place
        ) from problem
    if not isinstance(found, dict):
        raise UsageError(
            f"{name} is not a mapping of keys to values",
            hint='Write one "key: value" per line, as in tsuzuki.yaml.',
        )
    return found
