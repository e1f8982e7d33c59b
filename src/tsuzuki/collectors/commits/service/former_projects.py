"""Projects that an earlier program collected, recognised by their commits.

Their rows do not tell where they are. A repository, or a project of the GitLab, that has the newest stored commit of
a branch is the same project: it continues under its number, so none of its commits is stored a second time.
"""

from contextlib import closing

from tsuzuki.collectors.commits.queries import projects, targets
from tsuzuki.collectors.commits.queries.projects import NewProject, Project
from tsuzuki.collectors.commits.sources.factory import SourceFactory
from tsuzuki.collectors.commits.sources.source import CommitSource, Head, Lineage
from tsuzuki.collectors.commits.tables import ProjectKind
from tsuzuki.store.sql.database import Database


class FormerProjects:
    """The projects of a database whose source is not known; `of` asks a source at most for each of them."""

    def __init__(self, database: Database, sources: SourceFactory) -> None:
        self._database = database
        self._sources = sources
        with database.read() as connection:
            self._projects = projects.without_location(connection)
            self._newest = (
                targets.newest_commits(connection, [one.project_id for one in self._projects])
                if self._projects
                else {}
            )

    def of(self, found: NewProject) -> int | None:
        """The number of the project that `found` continues; None if it is another one."""
        candidates = [one for one in self._projects if _may_be(one, found)]
        if not candidates:
            return None
        with self._database.read() as connection:
            if projects.same(connection, found) is not None:
                return None
        with closing(self._sources.open_new(found)) as source:
            head = source.head(found.default_branch) if found.default_branch else None
            for one in candidates:
                newest = self._newest.get(one.project_id, [])
                if isinstance(head, Head) and _has_one(source, newest, head):
                    self._projects.remove(one)
                    return one.project_id
        return None


def _may_be(former: Project, found: NewProject) -> bool:
    """A GitLab has thousands of projects, so only those with the same number or name are asked."""
    if found.kind is ProjectKind.GIT:
        return True
    return former.remote_id == found.remote_id or former.path in (found.path, found.name)


def _has_one(source: CommitSource, commits: list[str], head: Head) -> bool:
    return any(source.lineage(sha, head.sha) is not Lineage.UNKNOWN for sha in commits)
