"""Projects and commits of a GitLab, asked for through its REST API.

A project is asked for by its number, which a rename does not change. A range is `old..new`, both ids,
so its pages stand still; GitLab says no total, and answers a range whose end it does not have with an
empty list instead of an error. Such a list is never taken for "nothing new".
"""

import re
import threading
from base64 import b64decode
from collections.abc import Iterator, Sequence
from datetime import UTC
from typing import Any
from urllib.parse import quote, unquote, urlsplit

from tsuzuki.collectors.commits.committed_date import committed_date
from tsuzuki.collectors.commits.people.mailmap import MAILMAP
from tsuzuki.collectors.commits.queries.projects import NewProject
from tsuzuki.collectors.commits.sources.gitlab_client import (
    GitLabClient,
    GitLabReply,
    GitLabServer,
    next_query,
)
from tsuzuki.collectors.commits.sources.source import (
    Absence,
    Commit,
    CommitPage,
    Head,
    Lineage,
    Range,
    RangeLost,
)
from tsuzuki.collectors.commits.tables import ProjectKind
from tsuzuki.model.clock import Clock
from tsuzuki.outward.errors import SourceRefused, SourceUnavailable

PAGE_SIZE = 100
"""The most GitLab gives."""

TIME_FORMAT = "%Y-%m-%dT%H:%M:%SZ"

_NOT_STORABLE = re.compile("[\0\ud800-\udfff]")
"""What JSON can hold and a database cannot."""


class GitLabHost:
    """A GitLab server. Each thread that uses it has a connection of its own."""

    def __init__(
        self, *, url: str, token: str | None, clock: Clock, timeout_seconds: float = 30.0
    ) -> None:
        self._server = GitLabServer(
            url=url.rstrip("/"), token=token or None, timeout_seconds=timeout_seconds
        )
        self._clock = clock
        self._mine = threading.local()
        self._all: list[GitLabClient] = []
        self._lock = threading.Lock()

    def projects(self) -> Iterator[NewProject]:
        """Every project the token may read, asked for page by page."""
        query: dict[str, Any] | None = {
            "membership": "true",
            "pagination": "keyset",
            "order_by": "id",
            "sort": "asc",
            "per_page": PAGE_SIZE,
        }
        while query is not None:
            reply = self.client().get("/projects", query)
            for entity in _rows(reply):
                yield _project(entity, self._server)
            query = next_query(reply)

    def project(self, reference: int | str) -> NewProject:
        """One project by its number or its full path."""
        reply = self.client().get(f"/projects/{_segment(reference)}", accept=[404])
        if reply.status == 404:
            raise _no_project(reference, self._server)
        return _project(reply.body, self._server)

    def source(self, remote_id: int) -> "GitLabSource":
        """Its commits. Asks nothing yet; called by the thread that will use it."""
        return GitLabSource(self.client(), self._server, remote_id)

    def client(self) -> GitLabClient:
        """This thread's connection."""
        found: GitLabClient | None = getattr(self._mine, "client", None)
        if found is None:
            found = self._mine.client = GitLabClient(self._server, self._clock)
            with self._lock:
                self._all.append(found)
        return found

    def close(self) -> None:
        with self._lock:
            for client in self._all:
                client.close()
            self._all.clear()
        self._mine = threading.local()


class GitLabSource:
    """One project of a GitLab."""

    def __init__(self, client: GitLabClient, server: GitLabServer, remote_id: int) -> None:
        self._client = client
        self._server = server
        self._remote_id = remote_id
        self._root = f"/projects/{remote_id}"

    def head(self, branch: str) -> Head | Absence:
        path = f"{self._root}/repository/branches/{_segment(branch)}"
        reply = self._client.get(path, accept=[404])
        if reply.status == 404:
            return self._absence(reply)
        try:
            is_default = reply.body.get("default")
            return Head(
                sha=_text(reply.body["commit"]["id"]),
                is_default=is_default if isinstance(is_default, bool) else None,
                path=self._path(reply.body.get("web_url")),
            )
        except (LookupError, TypeError, AttributeError):
            raise _senseless("a branch") from None

    def default_branch(self) -> str | None:
        return self._project().default_branch

    def why_default(self) -> str:
        return "the project's default branch"

    def branches(self) -> Iterator[str]:
        number: int | None = 1
        while number is not None:
            query = {"per_page": PAGE_SIZE, "page": number}
            reply = self._client.get(f"{self._root}/repository/branches", query)
            rows = _rows(reply)
            try:
                yield from (_text(entity["name"]) for entity in rows)
            except (LookupError, TypeError):
                raise _senseless("a branch") from None
            number = _following(reply, number, len(rows))

    def lineage(self, old: str, new: str) -> Lineage:
        path, query = f"{self._root}/repository/merge_base", {"refs[]": [old, new]}
        reply = self._client.get(path, query, accept=[400, 404])
        if reply.status == 400 and old in reply.error_message:
            return Lineage.UNKNOWN
        if reply.status == 404 and "Merge Base" in reply.error_message:
            return Lineage.REWRITTEN
        if reply.status == 404:
            raise _no_project(self._remote_id, self._server)
        if reply.status == 400:
            raise SourceUnavailable(
                f"GitLab at {self._server.name} no longer has the head it reported"
            )
        base = reply.body.get("id") if isinstance(reply.body, dict) else None
        if base == old:
            return Lineage.ANCESTOR
        return Lineage.RESET if base == new else Lineage.REWRITTEN

    def mailmap(self, head: str) -> bytes:
        path = f"{self._root}/repository/files/{_segment(MAILMAP)}"
        reply = self._client.get(path, {"ref": head}, accept=[404])
        if reply.status == 404:
            return b""
        try:
            return b64decode(reply.body["content"], validate=True)
        except (LookupError, TypeError, ValueError):
            raise _senseless("a file") from None

    def pages(self, wanted: Range, *, mark: str | None = None) -> Iterator[CommitPage]:
        number: int | None = _marked(mark)
        if wanted.old == wanted.new:
            yield CommitPage(commits=(), mark=_mark(number or 1), is_last=True)
            return
        while number is not None:
            reply = self._client.get(f"{self._root}/repository/commits", _query(wanted, number))
            notes: dict[str, str] = {}
            commits = [_commit(entity, notes) for entity in _rows(reply)]
            self._check(wanted, number, commits)
            following = _following(reply, number, len(commits))
            yield CommitPage(
                commits=commits,
                mark=_mark(number + 1),
                is_last=following is None,
                date_notes=notes,
            )
            number = following

    def ids(self, head: str) -> Iterator[Sequence[str]]:
        number: int | None = 1
        while number is not None:
            query = {"ref_name": head, "per_page": PAGE_SIZE, "page": number}
            reply = self._client.get(f"{self._root}/repository/commits", query)
            try:
                shas = [_text(entity["id"]) for entity in _rows(reply)]
            except (LookupError, TypeError):
                raise _senseless("a list") from None
            if number == 1 and head not in shas:
                raise RangeLost(f"GitLab at {self._server.name} no longer has the head it reported")
            yield shas
            number = _following(reply, number, len(shas))

    def close(self) -> None:
        """The connection is the host's."""

    def _check(self, wanted: Range, number: int, commits: list[Commit]) -> None:
        """A range holds its own new end on the first page, and no page of it is empty; unless the
        branch was reset, then the whole range is."""
        if number == 1 and wanted.since is None:
            is_sound = any(commit.sha == wanted.new for commit in commits)
        else:
            is_sound = bool(commits)
        if is_sound:
            return
        known = self.lineage(wanted.old or wanted.new, wanted.new)
        if known is Lineage.RESET and not commits:
            return
        if known is Lineage.UNKNOWN or (number == 1 and wanted.since is None):
            raise RangeLost(
                f"GitLab at {self._server.name} no longer has one end of the range "
                f"{(wanted.old or 'the beginning')[:12]}..{wanted.new[:12]}"
            )

    def _absence(self, reply: GitLabReply) -> Absence:
        """What a 404 on a branch is about: the branch, or the repository or project around it."""
        if self._project().default_branch is None:
            return Absence.EMPTY_REPOSITORY
        if "branch" in reply.error_message.lower():
            return Absence.NO_BRANCH
        raise SourceRefused(
            f"GitLab at {self._server.name} denies access to the repository of project "
            f"{self._remote_id}: {reply.error_message or '404'}",
            hint="The repository may be disabled, or the token may not have access.",
            code="repository_hidden",
        )

    def _project(self) -> NewProject:
        reply = self._client.get(self._root, accept=[404])
        if reply.status == 404:
            raise _no_project(self._remote_id, self._server)
        return _project(reply.body, self._server)

    def _path(self, web_url: object) -> str | None:
        """The project's path, out of the address of one of its branches."""
        path, found, _ = urlsplit(str(web_url or "")).path.partition("/-/tree/")
        below = path.removeprefix(urlsplit(self._server.url).path)
        return unquote(below.strip("/")) or None if found else None


def _segment(value: int | str) -> str:
    """A name as one segment of a path."""
    return quote(str(value), safe="")


def _query(wanted: Range, number: int) -> dict[str, Any]:
    query = {
        "ref_name": f"{wanted.old}..{wanted.new}" if wanted.old else wanted.new,
        "with_stats": "true",
        "per_page": PAGE_SIZE,
        "page": number,
    }
    if wanted.since is not None and wanted.old is None:
        query["since"] = wanted.since.astimezone(UTC).strftime(TIME_FORMAT)
    return query


def _mark(number: int) -> str:
    return f"page {number} of {PAGE_SIZE}"


def _marked(mark: str | None) -> int:
    """The page a mark leads to. One that was made with pages of another size leads to the first:
    rows that come twice are stored once."""
    words = (mark or "").split(" ")
    if len(words) == 4 and words[3] == str(PAGE_SIZE) and words[1].isdecimal():
        return max(int(words[1]), 1)
    return 1


def _following(reply: GitLabReply, number: int, count: int) -> int | None:
    announced = reply.headers.get("x-next-page")
    if announced is None:
        return number + 1 if count == PAGE_SIZE else None
    return int(announced) if announced.isdecimal() else None


def _rows(reply: GitLabReply) -> list[Any]:
    if not isinstance(reply.body, list):
        raise _senseless("a list")
    return reply.body


def _commit(entity: Any, notes: dict[str, str]) -> Commit:
    """A date that cannot be read is noted by the commit's id, and does not fail the others."""
    try:
        sha, stats = _text(entity["id"]), entity["stats"]
        committed = committed_date(entity["committed_date"])
        if committed.note is not None:
            notes[sha] = committed.note
        return Commit(
            sha=sha,
            author_name=_NOT_STORABLE.sub("\ufffd", entity["author_name"] or ""),
            author_email=_NOT_STORABLE.sub("\ufffd", entity["author_email"] or ""),
            committed_date_utc=committed.stored,
            additions=int(stats["additions"]),
            deletions=int(stats["deletions"]),
            parents=" ".join(_text(parent) for parent in entity["parent_ids"]),
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        raise _senseless("a commit with its counts") from None


def _project(entity: Any, server: GitLabServer) -> NewProject:
    """A repository without a commit has a default branch in name only."""
    try:
        default = None if entity.get("empty_repo") else entity.get("default_branch")
        return NewProject(
            kind=ProjectKind.GITLAB,
            location=server.url,
            remote_id=int(entity["id"]),
            path=_text(entity["path_with_namespace"]),
            name=_text(entity["name"]),
            url=_text(entity["web_url"]),
            default_branch=default or None,
            is_archived=bool(entity.get("archived", False)),
        )
    except (LookupError, TypeError, ValueError, AttributeError):
        raise _senseless("a project") from None


def _text(value: object) -> str:
    if not isinstance(value, str) or not value:
        raise TypeError("text is expected")
    return value


def _senseless(expected: str) -> SourceUnavailable:
    return SourceUnavailable(f"GitLab sent something other than {expected}")


def _no_project(reference: int | str, server: GitLabServer) -> SourceRefused:
    return SourceRefused(
        f"GitLab at {server.name} has no project {reference}",
        hint="It may have been deleted, or the token may not have access.",
    )
