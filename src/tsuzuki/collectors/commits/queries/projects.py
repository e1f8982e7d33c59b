"""Projects: where commits come from. A sync adds and renames them; it never takes anything away."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, Connection, bindparam, func, insert, select, update

from tsuzuki.collectors.commits.tables import ProjectKind, commit_totals, projects
from tsuzuki.store.sql.prepared import execute, parameters_for
from tsuzuki.store.sql.stored_values import to_text


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
    """A stored project; `project_id` is ours and never changes. Without a `location` it was taken over from an
    earlier program, and where it is remains to be found."""

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
_IS_PROJECT = projects.c.project_id == bindparam("project", type_=BigInteger())
_SYNCED = parameters_for(
    projects, "path", "name", "url", "default_branch", "is_archived", "synced_at_utc"
)
_ADD = (
    insert(projects)
    .values(**parameters_for(projects, "kind", "location", "remote_id", "added_at_utc"), **_SYNCED)
    .returning(projects.c.project_id)
)
_SYNC = update(projects).where(_IS_PROJECT).values(**_SYNCED)
_RENAME = update(projects).where(_IS_PROJECT).values(**parameters_for(projects, "path", "name"))
_MOVE_DEFAULT = (
    update(projects).where(_IS_PROJECT).values(**parameters_for(projects, "default_branch"))
)
_LOCATE = (
    update(projects)
    .where(_IS_PROJECT, projects.c.location == "")
    .values(**parameters_for(projects, "kind", "location", "remote_id"))
)
_ALL = select(*_COLUMNS).order_by(projects.c.path, projects.c.project_id)
_WITHOUT_LOCATION = _ALL.where(projects.c.location == "")
_BY_ID = select(*_COLUMNS).where(_IS_PROJECT)
_SAME = parameters_for(projects, "kind", "location", "remote_id")
_SAME_REPOSITORY = (
    select(*_COLUMNS)
    .where(projects.c.kind == _SAME["kind"], projects.c.location == _SAME["location"])
    .with_for_update()
)
_SAME_REMOTE = _SAME_REPOSITORY.where(projects.c.remote_id == _SAME["remote_id"])
_COUNT_COMMITS = select(
    commit_totals.c.project_id, func.sum(commit_totals.c.commits).label("commits")
).group_by(commit_totals.c.project_id)


def record(connection: Connection, found: NewProject, *, now: datetime) -> ProjectChange:
    """Store a project, or what is new about one that is stored."""
    before = same(connection, found)
    values = {
        "path": found.path,
        "name": found.name,
        "url": found.url,
        "default_branch": found.default_branch,
        "is_archived": found.is_archived,
        "synced_at_utc": to_text(now),
    }
    if before is None:
        added = {**_identity(found), "added_at_utc": to_text(now), **values}
        project_id = execute(connection, _ADD, added).scalar_one()
        return ProjectChange(project=_required(connection, project_id), is_new=True)
    execute(connection, _SYNC, {"project": before.project_id, **values})
    moved = before.default_branch not in (None, found.default_branch)
    return ProjectChange(
        project=_required(connection, before.project_id),
        is_new=False,
        renamed_from=before.path if before.path != found.path else None,
        default_moved_from=before.default_branch if moved else None,
    )


def without_location(connection: Connection) -> list[Project]:
    """The projects that were taken over and whose source was not found yet."""
    return [_project(row) for row in execute(connection, _WITHOUT_LOCATION).mappings()]


def locate(connection: Connection, project_id: int, found: NewProject) -> None:
    """Note where a project is that was taken over. One whose source is known stays as it is."""
    if same(connection, found) is None:
        execute(connection, _LOCATE, {"project": project_id, **_identity(found)})


def rename(connection: Connection, project_id: int, path: str) -> None:
    """Take note of a project's new path, as its source told it."""
    values = {"project": project_id, "path": path, "name": path.rsplit("/", 1)[-1]}
    execute(connection, _RENAME, values)


def move_default(connection: Connection, project_id: int, branch: str) -> None:
    execute(connection, _MOVE_DEFAULT, {"project": project_id, "default_branch": branch})


def get(connection: Connection, project_id: int) -> Project | None:
    row = execute(connection, _BY_ID, {"project": project_id}).mapping_or_none()
    return None if row is None else _project(row)


def find(connection: Connection) -> list[Project]:
    """Every project, by its path."""
    return [_project(row) for row in execute(connection, _ALL).mappings()]


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
    rows = execute(connection, _COUNT_COMMITS).all()
    return {project_id: int(count) for project_id, count in rows}


def same(connection: Connection, found: NewProject) -> Project | None:
    """The stored project that this is."""
    statement = _SAME_REPOSITORY if found.remote_id is None else _SAME_REMOTE
    row = execute(connection, statement, _identity(found)).mapping_or_none()
    return None if row is None else _project(row)


def _identity(found: NewProject) -> dict[str, Any]:
    """What stays the same of a project when it is renamed."""
    return {
        "kind": found.kind.value,
        "location": found.location,
        "remote_id": found.remote_id,
    }


def _required(connection: Connection, project_id: int) -> Project:
    project = get(connection, project_id)
    if project is None:
        raise LookupError(f"project {project_id} was stored a moment ago")
    return project


def _project(row: Mapping[str, Any]) -> Project:
    return Project(**{**row, "kind": ProjectKind(row["kind"])})
