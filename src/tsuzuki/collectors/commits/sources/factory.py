"""Sources of projects: opened for a stored project, or for what a person typed (a path, a git URL, a
project of the GitLab)."""

from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from tsuzuki.collectors.commits.git.program import Git
from tsuzuki.collectors.commits.git.repository_folder import common_folder, top_of
from tsuzuki.collectors.commits.options import CommitsSection
from tsuzuki.collectors.commits.queries.projects import NewProject, Project
from tsuzuki.collectors.commits.sources.git import GitSource
from tsuzuki.collectors.commits.sources.mirror import Mirrors, MirrorSource
from tsuzuki.collectors.commits.sources.source import CommitSource
from tsuzuki.collectors.commits.tables import ProjectKind
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.outward.errors import SourceRefused

if TYPE_CHECKING:
    from tsuzuki.collectors.commits.sources.gitlab import GitLabHost

THIS_MACHINE = "this machine"


class SourceFactory:
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
        self._gitlab: GitLabHost | None = None

    def open(self, project: Project) -> CommitSource:
        """The source of a project; it asks nothing yet."""
        return self.open_new(project)

    def open_new(self, project: NewProject) -> CommitSource:
        """The same for a project that is not stored yet."""
        if not project.location:
            raise SourceRefused(
                f"{project.path} was collected by another program, and its location is unknown",
                hint="Name its repository with: tsuzuki commits projects add LOCATION. Or find it on "
                "GitLab with: tsuzuki commits projects sync",
                code="location_unknown",
            )
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

    def gitlab(self, location: str | None = None) -> "GitLabHost":
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

    def _connected(self) -> "GitLabHost":
        from tsuzuki.collectors.commits.sources.gitlab import GitLabHost  # noqa: PLC0415 - slow

        token = self._section.gitlab.token
        return GitLabHost(
            url=self._section.gitlab.url,
            token=token.get_secret_value() if token else None,
            clock=self._git.clock,
            timeout_seconds=self._section.request_timeout,
        )


def is_url(location: str) -> bool:
    """Whether a location is somewhere else: `https://…`, or `host:path` as ssh writes it."""
    if "://" in location:
        return True
    host, colon, _path = location.partition(":")
    return bool(colon) and "/" not in host


def is_path(location: str) -> bool:
    """Whether a location can only be a path: no project of a GitLab has a name that begins so."""
    return location.startswith(("/", "~", "./", "../")) or location in (".", "..")


def host_of(project: Project) -> str:
    """The host whose pauses a project shares."""
    if project.kind is ProjectKind.GITLAB:
        return project.location
    if not is_url(project.location):
        return THIS_MACHINE
    parts = urlsplit(project.location)
    return parts.hostname or project.location.partition(":")[0]


# --- what a person typed --------------------------------------------------------------------------


def described(
    location: str, *, base: Path, sources: SourceFactory, or_remote: bool = False
) -> NewProject:
    """The repository at `location`, after a look at it. With `or_remote`, what is neither a path
    nor a URL is looked up on the configured GitLab. Raises `SourceFailed` if it does not answer."""
    if is_url(location):
        return _looked_at(_of_url(location), sources)
    folder = _folder(location, base)
    if folder.is_dir():
        return _looked_at(_of_folder(top_of(folder)), sources)
    if is_path(location):
        raise NotFound(
            f"folder {folder} does not exist",
            hint="Name a folder in a git repository.",
            code="folder_unknown",
        )
    if or_remote and sources.has_gitlab:
        return sources.gitlab().project(location)
    raise NotFound(
        f"{location!r} is neither a known project nor a local repository",
        hint="Name a folder, a git URL, or a project listed by: tsuzuki commits projects ls",
        code="project_unknown",
    )


def _looked_at(found: NewProject, sources: SourceFactory) -> NewProject:
    with closing(sources.open_new(found)) as source:
        return replace(found, default_branch=source.default_branch())


def same_repository(found: NewProject, known: Iterable[Project]) -> Project | None:
    """The known project that is the same repository of this machine, perhaps by another of its folders."""
    if not _is_here(found):
        return None
    common = common_folder(Path(found.location))
    return next(
        (one for one in known if _is_here(one) and common_folder(Path(one.location)) == common),
        None,
    )


def _is_here(project: NewProject) -> bool:
    """Whether it is a repository of this machine. One that was taken over may have no location yet."""
    location = project.location
    return project.kind is ProjectKind.GIT and location != "" and not is_url(location)


def _folder(location: str, base: Path) -> Path:
    try:
        return (base / Path(location).expanduser()).resolve()
    except RuntimeError:  # the home folder of an unknown user
        return base / location


def _of_folder(folder: Path) -> NewProject:
    named = folder.parent if folder.name == ".git" else folder
    return _new(str(folder), path=str(named), name=named.name.removesuffix(".git"))


def _of_url(url: str) -> NewProject:
    parts = urlsplit(url)
    if parts.password is not None or (parts.username and parts.scheme in ("http", "https")):
        raise UsageError(
            "the URL contains a user name and password, which would be stored",
            hint="Remove them, and use a git credential helper or ssh.",
            code="secret_in_url",
        )
    if url.startswith("-"):
        raise UsageError(f"{url!r} is not a URL")
    path = (parts.path if parts.scheme else url.partition(":")[2]).strip("/").removesuffix(".git")
    return _new(url, path=path or url, name=path.rsplit("/", 1)[-1] or url)


def _new(location: str, *, path: str, name: str) -> NewProject:
    return NewProject(
        kind=ProjectKind.GIT,
        location=location,
        remote_id=None,
        path=path,
        name=name,
        url=location,
        default_branch=None,
    )
