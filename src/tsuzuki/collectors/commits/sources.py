"""From a stored project to the source that answers for it, and the host whose pauses it shares."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from tsuzuki.collectors.commits.git_program import Git
from tsuzuki.collectors.commits.options import CommitsSection
from tsuzuki.collectors.commits.queries.projects import NewProject, Project
from tsuzuki.collectors.commits.source import ProjectHost, RemoteProject, Source
from tsuzuki.collectors.commits.source_git import GitSource
from tsuzuki.collectors.commits.source_mirror import Mirrors, MirrorSource
from tsuzuki.collectors.commits.tables import ProjectKind
from tsuzuki.collectors.kit.errors import SourceRefused
from tsuzuki.model.clock import Clock

THIS_MACHINE = "this machine"


class Sources:
    """Opens sources for one run. `stopping` is looked at wherever a source waits."""

    def __init__(
        self,
        *,
        section: CommitsSection,
        workspace: Path,
        clock: Clock,
        stopping: Callable[[], bool] = lambda: False,
    ) -> None:
        self._section = section
        self._git = Git(clock=clock, silence_seconds=section.git_timeout, stopping=stopping)
        self._mirrors = Mirrors(workspace / section.mirrors)
        self._gitlab: ProjectHost | None = None

    def open(self, project: Project) -> Source:
        """The source of a project; it asks nothing yet."""
        return self.open_new(project)

    def open_new(self, project: NewProject) -> Source:
        """The same for a project that is not stored yet."""
        if project.kind is ProjectKind.GITLAB:
            if project.remote_id is None:
                raise ValueError("a project of a GitLab has a number there")
            return self.gitlab(project.location).source(project.remote_id)
        if is_url(project.location):
            return MirrorSource(
                url=project.location,
                mirrors=self._mirrors,
                git=replace(self._git, silence_seconds=self._section.request_timeout),
                fetching=replace(self._git, silence_seconds=self._section.fetch_timeout),
                reading=self._git,
                page_commits_max=self._section.page_commits,
            )
        return GitSource(
            folder=Path(project.location),
            git=self._git,
            page_commits_max=self._section.page_commits,
        )

    @property
    def has_gitlab(self) -> bool:
        """Whether a GitLab is configured: without a token nothing private can be asked."""
        return self._section.gitlab.token is not None

    def gitlab(self, location: str | None = None) -> ProjectHost:
        """The GitLab of the configuration. A project of another one has no token here."""
        section = self._section.gitlab
        if location not in (None, section.url.rstrip("/")):
            raise SourceRefused(
                f"the project is on {location}, but {section.url} is configured",
                hint="Set `url` and `token` under `commits.gitlab:` for that server.",
            )
        if self._gitlab is None:
            self._gitlab = self._connected()
        return self._gitlab

    def close(self) -> None:
        """Give back what the sources held."""
        if self._gitlab is not None:
            self._gitlab.close()

    def _connected(self) -> ProjectHost:
        from tsuzuki.collectors.commits.source_gitlab import GitLabHost  # noqa: PLC0415 - slow

        token = self._section.gitlab.token
        return GitLabHost(
            url=self._section.gitlab.url,
            token=token.get_secret_value() if token else None,
            clock=self._git.clock,
            timeout_seconds=self._section.request_timeout,
        )

    def found(self, remote: RemoteProject) -> NewProject:
        """A project of the configured server, ready to be stored."""
        return NewProject(
            kind=ProjectKind.GITLAB,
            location=self._section.gitlab.url.rstrip("/"),
            remote_id=remote.remote_id,
            path=remote.path,
            name=remote.name,
            url=remote.url,
            default_branch=remote.default_branch,
            is_archived=remote.is_archived,
        )


def is_url(location: str) -> bool:
    """Whether a location is somewhere else: `https://…`, or `host:path` as ssh writes it."""
    if "://" in location:
        return True
    host, colon, _path = location.partition(":")
    return bool(colon) and "/" not in host


def host_of(project: Project) -> str:
    """What a pause for one project is a pause for."""
    if project.kind is ProjectKind.GITLAB:
        return project.location
    if not is_url(project.location):
        return THIS_MACHINE
    parts = urlsplit(project.location)
    return parts.hostname or project.location.partition(":")[0]
