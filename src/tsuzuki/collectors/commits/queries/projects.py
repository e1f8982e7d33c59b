"""Projects: where commits come from. A sync adds and renames them; it never takes anything away."""

from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, RowMapping, func, insert, select, update

from tsuzuki.collectors.commits.tables import ProjectKind, commit_totals, projects
from tsuzuki.store.sql.types import to_text


@dataclass(frozen=True, kw_only=True)
class NewProject:
    """What is known of a project before it is stored. `location` names its server, or itself."""

    kind: ProjectKind
    location: str
    remote_id: int | None
    path: str
    name: str
    url: str
    default_branch: str | None
    is_archived: bool = False


@dataclass(frozen=True, kw_only=True)
class Project(NewProject):
    """A stored project; `project_id` is ours and never changes."""

    project_id: int


@dataclass(frozen=True, kw_only=True)
class ProjectChange:
    """What a sync did to one project."""

    project: Project
    is_new: bool
    renamed_from: str | None = None
    default_moved_from: str | None = None


_COLUMNS = [
    projects.c[name]
    for name in (
        "project_id",
        "kind",
        "location",
        "remote_id",
        "path",
        "name",
        "url",
        "default_branch",
        "is_archived",
    )
]


def record(connection: Connection, found: NewProject, *, now: datetime) -> ProjectChange:
    """Store a project, or what is new about one that is stored."""
    before = _same(connection, found)
    values = {
        "path": found.path,
        "name": found.name,
        "url": found.url,
        "default_branch": found.default_branch,
        "is_archived": found.is_archived,
        "synced_at_utc": to_text(now),
    }
    if before is None:
        project_id = connection.execute(
            insert(projects)
            .values(
                kind=found.kind,
                location=found.location,
                remote_id=found.remote_id,
                added_at_utc=to_text(now),
                **values,
            )
            .returning(projects.c.project_id)
        ).scalar_one()
        return ProjectChange(project=_required(connection, project_id), is_new=True)
    connection.execute(
        update(projects).where(projects.c.project_id == before.project_id).values(**values)
    )
    moved = before.default_branch not in (None, found.default_branch)
    return ProjectChange(
        project=_required(connection, before.project_id),
        is_new=False,
        renamed_from=before.path if before.path != found.path else None,
        default_moved_from=before.default_branch if moved else None,
    )


def rename(connection: Connection, project_id: int, path: str) -> None:
    """Take note of a project's new path, as its source told it."""
    connection.execute(
        update(projects)
        .where(projects.c.project_id == project_id)
        .values(path=path, name=path.rsplit("/", 1)[-1])
    )


def move_default(connection: Connection, project_id: int, branch: str) -> None:
    connection.execute(
        update(projects).where(projects.c.project_id == project_id).values(default_branch=branch)
    )


def get(connection: Connection, project_id: int) -> Project | None:
    row = connection.execute(
        select(*_COLUMNS).where(projects.c.project_id == project_id)
    ).mappings()
    found = row.one_or_none()
    return None if found is None else _project(found)


def find(connection: Connection) -> list[Project]:
    """Every project, by its path."""
    rows = connection.execute(
        select(*_COLUMNS).order_by(projects.c.path, projects.c.project_id)
    ).mappings()
    return [_project(row) for row in rows]


def named(connection: Connection, reference: str) -> list[Project]:
    """The projects a person may mean: by number, path, name or location."""
    found = find(connection)
    if reference.isdecimal():
        by_number = [p for p in found if p.project_id == int(reference)]
        if by_number:
            return by_number
    exact = [p for p in found if reference in (p.path, p.location, p.url)]
    return exact or [p for p in found if p.name == reference]


def commit_counts(connection: Connection) -> dict[int, int]:
    """How many commits of each project are stored; one on several branches counts once."""
    rows = connection.execute(
        select(commit_totals.c.project_id, func.sum(commit_totals.c.commits)).group_by(
            commit_totals.c.project_id
        )
    )
    return {row[0]: int(row[1]) for row in rows}


def _same(connection: Connection, found: NewProject) -> Project | None:
    statement = select(*_COLUMNS).where(
        projects.c.kind == found.kind.value, projects.c.location == found.location
    )
    if found.remote_id is not None:
        statement = statement.where(projects.c.remote_id == found.remote_id)
    row = connection.execute(statement.with_for_update()).mappings().one_or_none()
    return None if row is None else _project(row)


def _required(connection: Connection, project_id: int) -> Project:
    project = get(connection, project_id)
    if project is None:
        raise LookupError(f"project {project_id} was stored a moment ago")
    return project


def _project(row: RowMapping) -> Project:
    values: dict[str, Any] = dict(row)
    values["kind"] = ProjectKind(row["kind"])
    return Project(**values)
