"""Read the mailmap of a project, as it is at the head of its default branch.

It is read once for each head. A collection never fails because of it: if it cannot be read, the one that was
kept stays, and the next collection tries again.
"""

from tsuzuki.collectors.commits.collection_context import CollectionContext
from tsuzuki.collectors.commits.people.mailmap import kept_part
from tsuzuki.collectors.commits.queries import mailmaps
from tsuzuki.collectors.commits.queries.projects import Project
from tsuzuki.collectors.commits.sources.source import CommitSource
from tsuzuki.outward.errors import RateLimited, SourceFailed


def new_mailmap(
    context: CollectionContext, project: Project, source: CommitSource, head: str
) -> str | None:
    """The mailmap at this head; None if it is kept already, or cannot be read. Raises `RateLimited`: a host
    that asks for a pause gets it."""
    with context.database.read() as connection:
        if mailmaps.read_at(connection, project.project_id) == head:
            return None
    try:
        return kept_part(source.mailmap(head))
    except RateLimited:
        raise
    except SourceFailed as problem:
        context.run.log(f"cannot read the mailmap of {project.path}: {problem}")
        return None
