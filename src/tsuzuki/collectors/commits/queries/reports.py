"""How collections went and how far they are: what people look at."""

from dataclasses import dataclass

from sqlalchemy import (
    Connection,
    Integer,
    Text,
    and_,
    bindparam,
    case,
    exists,
    func,
    or_,
    select,
)

from tsuzuki.collectors.commits.queries.notes import Note, notes_of
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.tables import (
    CollectionStatus,
    ResultStatus,
    bulk_collection_results,
    bulk_collection_runs,
    commit_targets,
    projects,
)
from tsuzuki.store.sql.prepared import execute

_runs, _results = bulk_collection_runs, bulk_collection_results
_COLLECTION = bindparam("collection", type_=Text())


@dataclass(frozen=True, kw_only=True)
class Summary:
    """One collection, as the specified query sums it up."""

    collection_id: str
    started_at_utc: str
    completed_at_utc: str | None
    run_status: CollectionStatus
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


_SUMMARIES = (
    select(
        _runs.c.run_id.label("collection_id"),
        _runs.c.started_at_utc,
        _runs.c.completed_at_utc,
        _runs.c.status.label("run_status"),
        _runs.c.total_targets,
        _runs.c.success_count,
        _runs.c.failed_count,
        func.count(case((_results.c.status == ResultStatus.PENDING, 1))).label("pending_count"),
    )
    .outerjoin(_results, _results.c.run_id == _runs.c.run_id)
    .group_by(_runs.c.run_id)
    .order_by(_runs.c.started_at_utc.desc(), _runs.c.run_id)
)
_NEWEST_SUMMARIES = _SUMMARIES.limit(bindparam("limit", type_=Integer()))
_last = bulk_collection_runs.alias("last_run")
_SUMMARIES_BEHIND = _NEWEST_SUMMARIES.where(
    exists().where(
        _last.c.run_id == _COLLECTION,
        or_(
            _runs.c.started_at_utc < _last.c.started_at_utc,
            and_(
                _runs.c.started_at_utc == _last.c.started_at_utc,
                _runs.c.run_id > _last.c.run_id,
            ),
        ),
    )
)
_COUNT_RUNS = select(func.count()).select_from(_runs)
_SUMMARY = _SUMMARIES.where(_runs.c.run_id == _COLLECTION)


def summaries(
    connection: Connection,
    *,
    collection_id: str | None = None,
    after: str | None = None,
    limit: int = 50,
) -> list[Summary]:
    """Collections, the newest first, from behind the one with the id `after` on; or the one that is asked for."""
    if collection_id is not None:
        rows = execute(connection, _SUMMARY, {"collection": collection_id})
    elif after is not None:
        rows = execute(connection, _SUMMARIES_BEHIND, {"collection": after, "limit": limit})
    else:
        rows = execute(connection, _NEWEST_SUMMARIES, {"limit": limit})
    return [
        Summary(**{**row, "run_status": CollectionStatus(row["run_status"])})
        for row in rows.mappings()
    ]


def count(connection: Connection) -> int:
    """How many collections there are."""
    return int(execute(connection, _COUNT_RUNS).scalar_one())


def ids_beginning(connection: Connection, start: str) -> list[str]:
    """The collections whose id begins like this: a person need not type all of it."""
    statement = select(_runs.c.run_id).where(_runs.c.run_id.startswith(start, autoescape=True))
    return list(connection.execute(statement.limit(2)).scalars())


_RESULTS = (
    select(_results, projects.c.path)
    .outerjoin(projects, projects.c.project_id == _results.c.project_id)
    .where(_results.c.run_id == _COLLECTION)
    .order_by(projects.c.path, _results.c.project_id, _results.c.branch_name)
)


def results(connection: Connection, collection_id: str) -> list[Result]:
    """Every target of a collection, with what was noted about it."""
    notes = notes_of(connection, collection_id)
    rows = execute(connection, _RESULTS, {"collection": collection_id}).mappings()
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
        for row in rows
    ]


_NEW_COMMITS = select(func.coalesce(func.sum(_results.c.new_commits_count), 0)).where(
    _results.c.run_id == _COLLECTION
)
_IN_WORK = (
    select(
        projects.c.path,
        commit_targets.c.branch_name,
        commit_targets.c.range_commits.label("commits"),
    )
    .join(projects, projects.c.project_id == commit_targets.c.project_id)
    .join(
        _results,
        and_(
            _results.c.run_id == _COLLECTION,
            _results.c.project_id == commit_targets.c.project_id,
            _results.c.branch_name == commit_targets.c.branch_name,
            _results.c.status == ResultStatus.PENDING,
        ),
    )
    .where(commit_targets.c.range_run_id == _COLLECTION)
    .order_by(projects.c.path, commit_targets.c.branch_name)
)


def new_commits(connection: Connection, collection_id: str) -> int:
    """What a collection has brought so far: of targets that are done, and of those under way."""
    done = execute(connection, _NEW_COMMITS, {"collection": collection_id}).scalar_one()
    return int(done) + sum(one.commits for one in in_work(connection, collection_id))


def in_work(connection: Connection, collection_id: str) -> list[InWork]:
    """The targets whose pages are coming in."""
    rows = execute(connection, _IN_WORK, {"collection": collection_id}).mappings()
    return [InWork(**row) for row in rows]
