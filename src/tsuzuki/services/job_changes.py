"""Changes of job definitions in one transaction, each with its audit entry."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

from tsuzuki.model.errors import Conflict, VersionMismatch
from tsuzuki.model.job import Job, JobSource, JobSpec
from tsuzuki.model.run import RunRef
from tsuzuki.model.states import Reason
from tsuzuki.services.lookup import require_job
from tsuzuki.store import audit, jobs
from tsuzuki.store.rows import columns_of
from tsuzuki.store.runs import moves, rescue, runs
from tsuzuki.store.sql.database import Connection

NAMES_SHOWN_MAX = 5
CANCELED_AT_ONCE = 500


class ChangeKind(StrEnum):
    ADD = "add"
    CHANGE = "change"
    REMOVE = "remove"


@dataclass(frozen=True, kw_only=True)
class JobSyncChange:
    """One job that is, or would be, added, changed or removed."""

    kind: ChangeKind
    name: str
    before: Job | None = None
    after: JobSpec | None = None

    @property
    def keys(self) -> list[str]:
        """Which keys differ, for a change."""
        if self.before is None or self.after is None:
            return []
        old, new = spec_as_dict(self.before.spec), spec_as_dict(self.after)
        return [key for key in new if old[key] != new[key]]


def plan(stored: Iterable[Job], specs: Sequence[JobSpec]) -> list[JobSyncChange]:
    """What must happen so that the jobs of the file are those of `specs`."""
    by_name = {job.spec.name: job for job in stored}
    changes: list[JobSyncChange] = []
    for spec in specs:
        job = by_name.pop(spec.name, None)
        if job is None:
            changes.append(JobSyncChange(kind=ChangeKind.ADD, name=spec.name, after=spec))
        elif job.source is JobSource.DATABASE:
            raise taken(spec.name)
        elif job.spec != spec:
            changes.append(
                JobSyncChange(kind=ChangeKind.CHANGE, name=spec.name, before=job, after=spec)
            )
    changes.extend(
        JobSyncChange(kind=ChangeKind.REMOVE, name=job.spec.name, before=job)
        for job in by_name.values()
        if job.source is JobSource.FILE
    )
    return changes


def refuse_loss(changes: Iterable[JobSyncChange]) -> None:
    """Raises `Conflict` if a job that is stored would be changed or removed."""
    names = [change.name for change in changes if change.before is not None]
    if names:
        shown = ", ".join(names[:NAMES_SHOWN_MAX])
        more = f" and {len(names) - NAMES_SHOWN_MAX} more" if len(names) > NAMES_SHOWN_MAX else ""
        raise Conflict(
            f"the database contains the jobs of another workspace: {shown}{more}",
            hint="Nothing was changed. Use the tsuzuki.yaml of that workspace, or another database: "
            "unset TSUZUKI_DATABASE_URL.",
            code="other_workspace",
        )


def define(connection: Connection, specs: Sequence[JobSpec], *, actor: str) -> None:
    """Add or change jobs that live in the database only."""
    jobs.hold(connection)
    changes = to_define(connection, specs)
    carry_out(connection, changes, source=JobSource.DATABASE, actor=actor)


def to_define(connection: Connection, specs: Sequence[JobSpec]) -> list[JobSyncChange]:
    """What must happen so that the database has these jobs of its own. Raises `Conflict` for a job of the file."""
    stored = jobs.find_by_name(connection, [spec.name for spec in specs])
    changes: list[JobSyncChange] = []
    for spec in specs:
        job = stored.get(spec.name)
        if job is not None and job.source is JobSource.FILE:
            raise Conflict(
                f"job {spec.name!r} is defined in the file",
                hint="Change it in the file, or choose another name.",
                code="job_source",
            )
        if job is not None:
            _refuse_other_program(job.spec, spec)
        if job is None or job.spec != spec:
            kind = ChangeKind.ADD if job is None else ChangeKind.CHANGE
            changes.append(JobSyncChange(kind=kind, name=spec.name, before=job, after=spec))
    return changes


def _refuse_other_program(stored: JobSpec, wanted: JobSpec) -> None:
    """A job whose function is in the `__main__` of a program stays with that program: its runs were asked of that
    code. Two programs that define the same name would execute each other's runs."""
    theirs, ours = stored.needs.program, wanted.needs.program
    if theirs is None or ours is None or theirs == ours:
        return
    raise Conflict(
        f"job {wanted.name!r} is defined by another program: {theirs}",
        hint="Choose another name. If this program was moved, pass its former path as `program=`.",
        code="job_of_other_program",
    )


def create(connection: Connection, spec: JobSpec, *, actor: str) -> None:
    """Add a job that lives in the database only. Raises `Conflict` if there is one by that name."""
    jobs.hold(connection)
    if jobs.get_by_name(connection, spec.name) is not None:
        raise taken(spec.name)
    change = JobSyncChange(kind=ChangeKind.ADD, name=spec.name, after=spec)
    carry_out(connection, [change], source=JobSource.DATABASE, actor=actor)


def edit(connection: Connection, spec: JobSpec, *, version: int | None, actor: str) -> None:
    """Change a job of the database that still has this version; None: any. Raises `VersionMismatch`."""
    jobs.hold(connection)
    job = require_job(connection, spec.name)
    check_version(job, version, spec)
    if job.spec != spec:
        change = JobSyncChange(kind=ChangeKind.CHANGE, name=spec.name, before=job, after=spec)
        carry_out(connection, [change], source=job.source, actor=actor)


def check_version(job: Job, version: int | None, wanted: JobSpec | None = None) -> None:
    """Raises `VersionMismatch`, with the keys in which the job differs from what is `wanted`."""
    if version is None or version == job.version:
        return
    current = spec_as_dict(job.spec)
    sent = spec_as_dict(wanted) if wanted else current
    raise VersionMismatch(
        f"job {job.spec.name!r} is at version {job.version}, no longer at {version}",
        hint="Read the job again, and repeat the change if you still want it.",
        differences=[
            (key, current[key], sent[key]) for key in current if current[key] != sent[key]
        ],
    )


def set_enabled(connection: Connection, name: str, enabled: bool, *, actor: str) -> None:
    jobs.hold(connection)
    job = require_job(connection, name)
    if job.spec.enabled != enabled:
        after = replace(job.spec, enabled=enabled)
        change = JobSyncChange(kind=ChangeKind.CHANGE, name=name, before=job, after=after)
        carry_out(connection, [change], source=job.source, actor=actor)


def remove(connection: Connection, name: str, *, version: int | None = None, actor: str) -> None:
    jobs.hold(connection)
    job = jobs.get_by_name(connection, name)
    if job is not None:
        check_version(job, version)
        change = JobSyncChange(kind=ChangeKind.REMOVE, name=name, before=job)
        carry_out(connection, [change], source=job.source, actor=actor)


def carry_out(
    connection: Connection, changes: Sequence[JobSyncChange], *, source: JobSource, actor: str
) -> None:
    """Changes, and a line of each in the audit log. New jobs are stored together: there may be thousands."""
    if not changes:
        return
    added = [change.after for change in changes if change.before is None and change.after]
    if added:
        _cancel_what_waits_for_removed_jobs(connection, actor)
        jobs.add_many(connection, added, source=source)
    for change in changes:
        _carry_out_on(connection, change, actor)
    recorded = [
        audit.Recorded(
            change.name,
            f"job.{change.kind}",
            before=spec_as_dict(change.before.spec) if change.before else None,
            after=spec_as_dict(change.after) if change.after else None,
        )
        for change in changes
    ]
    audit.record_many(connection, recorded, actor=actor, object_type="job")


def _cancel_what_waits_for_removed_jobs(connection: Connection, actor: str) -> None:
    """As a leader does, if there is one: a job that gets the row of a removed one must not execute its runs."""
    while waiting := rescue.waiting_of_removed_jobs(connection, limit=CANCELED_AT_ONCE):
        if not moves.cancel(connection, operator=actor, runs=waiting, reason=Reason.JOB_DELETED):
            return


def _carry_out_on(connection: Connection, change: JobSyncChange, actor: str) -> None:
    """Change or remove a job that is stored."""
    job, spec = change.before, change.after
    if job is None:
        return
    if spec is not None and not job.is_replanned_by(spec):
        took = jobs.change(connection, job=job, spec=spec)
    else:
        took = _replan(connection, job, spec, actor)
    if not took:
        raise Conflict(
            f"job {change.name!r} was changed by another process at the same time",
            hint="Check the job, and repeat the change if you still want it.",
            code="job_changed",
        )


def _replan(connection: Connection, job: Job, spec: JobSpec | None, actor: str) -> bool:
    """Change or remove (None) a job, and record the due ticks that its planning leaves out as one skip."""
    planning = jobs.hold_planning(connection, job=job)
    if planning is None:
        return False
    job = replace(job, planned_until=planning.until)
    if skipped := job.skipped_by(spec, planning.now):
        ticks, reason = skipped
        created = runs.create(connection, [job.record_of(ticks)])
        refs = [RunRef(id=run_id, version=1) for run_id in created if run_id is not None]
        moves.cancel(connection, operator=actor, runs=refs, reason=reason)
    if spec is None:
        return jobs.remove(connection, job=job)
    planned_until = job.replanned_until(spec, planning.now)
    return jobs.change(connection, job=job, spec=spec, planned_until=planned_until)


def taken(name: str) -> Conflict:
    return Conflict(
        f"a job named {name!r} already exists; it was created through the API",
        hint="Choose another name, or delete that job with: tsuzuki job rm",
        code="job_name_taken",
    )


def spec_as_dict(spec: JobSpec) -> dict[str, Any]:
    """A job as JSON: what is kept, in the order in which people read it."""
    return columns_of(spec)
