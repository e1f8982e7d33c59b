"""Taking over the specified tables with the rows of an earlier program.

Such rows tell neither where a project is nor the heads of its branches. A project gets an empty `location` until a
repository or a project of the GitLab turns out to have its commits (`service.former_projects`); a branch continues
from its newest date (`branch`).
"""

from datetime import datetime

from sqlalchemy import (
    BigInteger,
    Connection,
    Integer,
    String,
    Text,
    bindparam,
    cast,
    func,
    insert,
    literal,
    or_,
    select,
    union,
    update,
)

from tsuzuki.collectors.commits.queries import targets
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.tables import (
    CollectionStatus,
    ProjectKind,
    ResultStatus,
    bulk_collection_owners,
    bulk_collection_results,
    bulk_collection_runs,
    commit_totals,
    commits,
    projects,
)
from tsuzuki.model.errors import SchemaMismatch
from tsuzuki.store.schema.takeover import FormerTable, FormerTables
from tsuzuki.store.sql.prepared import execute
from tsuzuki.store.sql.stored_values import to_text

_runs, _results = bulk_collection_runs, bulk_collection_results
_NOW = bindparam("now", type_=Text())
_MONTH_LENGTH = len("2024-02")

_newest = (
    select(_runs.c.run_id)
    .where(_runs.c.status == CollectionStatus.RUNNING)
    .order_by(_runs.c.started_at_utc.desc(), _runs.c.run_id)
    .limit(1)
    .scalar_subquery()
)
_CANCEL_OLDER = (
    update(_runs)
    .where(_runs.c.status == CollectionStatus.RUNNING, _runs.c.run_id != _newest)
    .values(status=CollectionStatus.CANCELLED, completed_at_utc=_NOW)
)
_OTHER_KINDS = (
    select(projects.c.kind)
    .where(*(projects.c.kind != literal(kind.value, Text()) for kind in ProjectKind))
    .limit(1)
)
_named = union(select(commits.c.project_id), select(_results.c.project_id)).subquery("named")
_ADD_PROJECTS = insert(projects).from_select(
    [
        "project_id",
        *("kind", "location", "path", "name", "url"),
        *("remote_id", "is_archived", "added_at_utc", "synced_at_utc"),
    ],
    select(
        _named.c.project_id,
        literal(ProjectKind.GITLAB.value, Text()),
        *(literal("", Text()) for _name in ("location", "path", "name", "url")),
        _named.c.project_id,
        literal(False, projects.c.is_archived.type),
        _NOW,
        _NOW,
    ).where(_named.c.project_id.not_in(select(projects.c.project_id))),
)
_COMPLETE_PROJECTS = [
    update(projects)
    .where(projects.c.location == "", projects.c.remote_id.is_(None))
    .values(remote_id=projects.c.project_id),
    *(
        update(projects).where(or_(column.is_(None), column == "")).values({column.name: value})
        for column, value in (
            (projects.c.name, literal("project-", Text()) + cast(projects.c.project_id, String())),
            (projects.c.path, projects.c.name),
            (projects.c.url, literal("", Text())),
            (projects.c.added_at_utc, _NOW),
            (projects.c.synced_at_utc, _NOW),
        )
    ),
]
_once = (
    select(
        commits.c.project_id,
        func.min(commits.c.author_email).label("author_email"),
        func.min(commits.c.author_name).label("author_name"),
        func.min(commits.c.committed_date_utc).label("date"),
        func.max(commits.c.additions).label("additions"),
        func.max(commits.c.deletions).label("deletions"),
    )
    .group_by(commits.c.project_id, commits.c.sha)
    .subquery("once")
)
_month = func.substr(_once.c.date, literal(1, Integer()), literal(_MONTH_LENGTH, Integer()))
_ADD_TOTALS = insert(commit_totals).from_select(
    [
        *("project_id", "month", "author_email", "author_name"),
        *("commits", "additions", "deletions"),
    ],
    select(
        _once.c.project_id,
        _month,
        _once.c.author_email,
        _once.c.author_name,
        func.count(),
        func.sum(_once.c.additions),
        func.sum(_once.c.deletions),
    ).group_by(_once.c.project_id, _month, _once.c.author_email, _once.c.author_name),
)
_ADD_OWNER = insert(bulk_collection_owners).from_select(
    ["run_id", "job_run_id"],
    select(_runs.c.run_id, literal(0, BigInteger())).where(
        _runs.c.status == CollectionStatus.RUNNING
    ),
)
_TARGETS_OF_RESULTS = (
    select(
        _results.c.project_id,
        _results.c.branch_name,
        func.max(
            cast(
                (_results.c.status == ResultStatus.PENDING)
                & (_runs.c.status == CollectionStatus.RUNNING),
                Integer(),
            )
        ).label("is_pending"),
    )
    .join(_runs, _runs.c.run_id == _results.c.run_id)
    .group_by(_results.c.project_id, _results.c.branch_name)
)


def former_tables() -> FormerTables:
    specified = (_runs, _results, commits)
    return FormerTables(
        tables=(
            FormerTable(
                table=projects,
                columns=("project_id",),
                defaults={
                    **dict.fromkeys(("location", "path", "name", "url"), "''"),
                    **dict.fromkeys(("added_at_utc", "synced_at_utc"), "''"),
                    "kind": f"'{ProjectKind.GITLAB.value}'",
                    "is_archived": "FALSE",
                },
            ),
            *(FormerTable(table=one, columns=tuple(one.c.keys())) for one in specified),
        ),
        settle=_settle,
        fill=_fill,
    )


def _settle(connection: Connection, there: frozenset[str], now: datetime) -> None:
    """At most one collection is running; earlier ones that never ended were left by a crash."""
    if _runs.name in there:
        execute(connection, _CANCEL_OLDER, {"now": to_text(now)})
    if projects.name in there and (kind := execute(connection, _OTHER_KINDS).scalars()):
        raise SchemaMismatch(
            f"table 'projects' cannot be taken over: column 'kind' contains {kind[0]!r}",
            hint="Rename the column. Nothing was changed.",
            code="foreign_table",
        )


def _fill(connection: Connection, now: datetime) -> None:
    at = {"now": to_text(now)}
    execute(connection, _ADD_PROJECTS, at)
    for statement in _COMPLETE_PROJECTS:
        execute(connection, statement, at)
    execute(connection, _ADD_TOTALS)
    execute(connection, _ADD_OWNER)
    targets.add_targets_with_commits(connection)
    known = {state.target for state in targets.find(connection)}
    for project_id, branch, is_pending in execute(connection, _TARGETS_OF_RESULTS).all():
        target = Target(project_id, branch)
        if target not in known:
            targets.follow(connection, target)
            if not is_pending:
                targets.unfollow(connection, target)
