"""How bulk collections went and how far they are: what people look at."""

from dataclasses import dataclass

from sqlalchemy import Connection, and_, case, func, select

from tsuzuki.collectors.commits.queries.ledger import Note
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.tables import (
    BulkStatus,
    NoteKind,
    ResultStatus,
    bulk_collection_notes,
    bulk_collection_results,
    bulk_collection_runs,
    commit_targets,
    projects,
)

_runs, _results, _notes = bulk_collection_runs, bulk_collection_results, bulk_collection_notes


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One bulk collection, as the specified query sums it up."""

    run_id: str
    started_at_utc: str
    completed_at_utc: str | None
    run_status: BulkStatus
    total_targets: int
    success_count: int
    failed_count: int
    pending_count: int


@dataclass(frozen=True, kw_only=True)
class Result:
    """How one target went."""

    project_id: int
    path: str
    branch_name: str
    status: ResultStatus
    new_commits_count: int | None
    error_message: str | None
    processed_at_utc: str | None
    notes: tuple[Note, ...]


@dataclass(frozen=True, kw_only=True)
class InWork:
    """A target that is being collected, and what it has brought so far."""

    path: str
    branch_name: str
    commits: int


def summaries(
    connection: Connection, *, run_id: str | None = None, limit: int = 50
) -> list[Summary]:
    """Bulk collections, the newest first; or the one that is asked for."""
    pending = func.count(case((_results.c.status == ResultStatus.PENDING.value, 1)))
    statement = (
        select(
            _runs.c.run_id,
            _runs.c.started_at_utc,
            _runs.c.completed_at_utc,
            _runs.c.status.label("run_status"),
            _runs.c.total_targets,
            _runs.c.success_count,
            _runs.c.failed_count,
            pending.label("pending_count"),
        )
        .outerjoin(_results, _results.c.run_id == _runs.c.run_id)
        .group_by(_runs.c.run_id)
        .order_by(_runs.c.started_at_utc.desc(), _runs.c.run_id)
        .limit(limit)
    )
    if run_id is not None:
        statement = statement.where(_runs.c.run_id == run_id)
    return [
        Summary(**{**row, "run_status": BulkStatus(row["run_status"])})
        for row in connection.execute(statement).mappings()
    ]


def ids_beginning(connection: Connection, start: str) -> list[str]:
    """The collections whose id begins like this: a person need not type all of it."""
    statement = select(_runs.c.run_id).where(_runs.c.run_id.startswith(start, autoescape=True))
    return list(connection.execute(statement.limit(2)).scalars())


def results(connection: Connection, run_id: str) -> list[Result]:
    """Every target of a collection, with what was noted about it."""
    notes = _notes_of(connection, run_id)
    statement = (
        select(_results, projects.c.path)
        .outerjoin(projects, projects.c.project_id == _results.c.project_id)
        .where(_results.c.run_id == run_id)
        .order_by(projects.c.path, _results.c.project_id, _results.c.branch_name)
    )
    return [
        Result(
            project_id=row["project_id"],
            path=row["path"] or f"project {row['project_id']}",
            branch_name=row["branch_name"],
            status=ResultStatus(row["status"]),
            new_commits_count=row["new_commits_count"],
            error_message=row["error_message"],
            processed_at_utc=row["processed_at_utc"],
            notes=tuple(notes.get(Target(row["project_id"], row["branch_name"]), ())),
        )
        for row in connection.execute(statement).mappings()
    ]


def new_commits(connection: Connection, run_id: str) -> int:
    """What a collection has brought so far: of targets that are done, and of those under way."""
    done = select(func.coalesce(func.sum(_results.c.new_commits_count), 0)).where(
        _results.c.run_id == run_id
    )
    return int(connection.execute(done).scalar_one()) + sum(
        one.commits for one in in_work(connection, run_id)
    )


def in_work(connection: Connection, run_id: str) -> list[InWork]:
    """The targets whose pages are coming in."""
    statement = (
        select(projects.c.path, commit_targets.c.branch_name, commit_targets.c.range_commits)
        .join(projects, projects.c.project_id == commit_targets.c.project_id)
        .join(
            _results,
            and_(
                _results.c.run_id == run_id,
                _results.c.project_id == commit_targets.c.project_id,
                _results.c.branch_name == commit_targets.c.branch_name,
                _results.c.status == ResultStatus.PENDING.value,
            ),
        )
        .where(commit_targets.c.range_run_id == run_id)
        .order_by(projects.c.path, commit_targets.c.branch_name)
    )
    return [
        InWork(path=row.path, branch_name=row.branch_name, commits=row.range_commits)
        for row in connection.execute(statement)
    ]


def _notes_of(connection: Connection, run_id: str) -> dict[Target, list[Note]]:
    found: dict[Target, list[Note]] = {}
    statement = select(_notes).where(_notes.c.run_id == run_id).order_by(_notes.c.kind)
    for row in connection.execute(statement).mappings():
        note = Note(kind=NoteKind(row["kind"]), sentence=row["sentence"])
        found.setdefault(Target(row["project_id"], row["branch_name"]), []).append(note)
    return found
