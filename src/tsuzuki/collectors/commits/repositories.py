"""From what a person typed to a project that can be stored: a path, a git URL, a project of the GitLab."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

from tsuzuki.collectors.commits.queries.projects import NewProject
from tsuzuki.collectors.commits.sources import Sources, is_url
from tsuzuki.collectors.commits.tables import ProjectKind
from tsuzuki.model.errors import NotFound, UsageError


def described(
    location: str, *, base: Path, sources: Sources, or_remote: bool = False
) -> NewProject:
    """The repository at `location`, after a look at it. With `or_remote`, what is neither a folder
    nor a URL is looked up on the configured GitLab. Raises `SourceFailed` if it does not answer."""
    if is_url(location):
        return _looked_at(_of_url(location), sources)
    folder = (base / Path(location).expanduser()).resolve()
    if folder.is_dir():
        return _looked_at(_of_folder(folder), sources)
    if or_remote and sources.has_gitlab:
        return sources.found(sources.gitlab().project(location))
    raise NotFound(
        f"{location!r} is neither a known project nor a repository here",
        hint="Name a folder, a git URL, or a project of `tsuzuki commits projects ls`.",
        code="project_unknown",
    )


def _looked_at(found: NewProject, sources: Sources) -> NewProject:
    with closing(sources.open_new(found)) as source:
        return replace(found, default_branch=source.default_branch())


def _of_folder(folder: Path) -> NewProject:
    named = folder.parent if folder.name == ".git" else folder
    return _new(str(folder), path=str(named), name=named.name.removesuffix(".git"))


def _of_url(url: str) -> NewProject:
    parts = urlsplit(url)
    if parts.password is not None or (parts.username and parts.scheme in ("http", "https")):
        raise UsageError(
            "this URL holds a name and password, which would be stored",
            hint="Leave them out, and let a git credential helper or ssh know them.",
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
