"""Projects by the reference that a person gives: a number, a path or a name."""

from tsuzuki.collectors.commits.queries import projects
from tsuzuki.collectors.commits.queries.projects import Project
from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.store.sql.database import Connection


def named_project(connection: Connection, reference: str) -> Project:
    """The one project a person means."""
    found = named_projects(connection, reference)
    if len(found) > 1:
        numbers = ", ".join(f"{project.project_id} ({project.path})" for project in found)
        raise UsageError(
            f"{reference!r} is ambiguous: {numbers}", hint="Give the project's number."
        )
    return found[0]


def named_projects(connection: Connection, reference: str) -> list[Project]:
    found = projects.named(connection, reference)
    if not found:
        known = [project.path for project in projects.find(connection)]
        raise NotFound(
            f"there is no project {reference!r}",
            hint=did_you_mean(reference, known) + "See: tsuzuki commits projects ls",
            code="project_unknown",
        )
    return found
