"""Commits of a git URL: the server is asked for heads only; for the rest a bare mirror is kept.

An unchanged branch costs one `git ls-remote`. What was fetched stays in the mirror, also what a force
push left behind, so that a former head can still be compared.
"""

import hashlib
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path

from tsuzuki.collectors.commits.git.errors import refusal
from tsuzuki.collectors.commits.git.program import Git
from tsuzuki.collectors.commits.sources.git import GitSource, parse_refs
from tsuzuki.collectors.commits.sources.source import Absence, CommitPage, Head, Lineage, Range
from tsuzuki.outward.errors import SourceUnavailable


class Mirrors:
    """The folder of all mirrors. Two targets of one repository fetch one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._locks: dict[Path, threading.Lock] = {}
        self._lock = threading.Lock()

    def place_of(self, url: str) -> tuple[Path, threading.Lock]:
        """Where the mirror of a URL is, or will be, and the lock to hold while changing it."""
        place = self._folder / f"{hashlib.sha256(url.encode()).hexdigest()[:32]}.git"
        with self._lock:
            return place, self._locks.setdefault(place, threading.Lock())


class MirrorSource:
    """One repository somewhere else. `git` asks the server, `fetching` has longer timeouts, and
    `reading` is for what is in the mirror."""

    def __init__(
        self,
        *,
        url: str,
        mirrors: Mirrors,
        git: Git,
        fetching: Git,
        reading: Git,
        page_commits_max: int,
    ) -> None:
        self._url = url
        self._folder, self._lock = mirrors.place_of(url)
        self._git = git
        self._fetching = fetching
        self._mirror = GitSource(
            folder=self._folder, git=reading, page_commits_max=page_commits_max
        )

    def head(self, branch: str) -> Head | Absence:
        name = f"refs/heads/{branch}"
        refs = self._remote("HEAD", name)
        if name in refs:
            return Head(sha=refs[name], is_default=self._default_among(refs) in (None, branch))
        return Absence.NO_BRANCH if self._remote("refs/heads/*") else Absence.EMPTY_REPOSITORY

    def default_branch(self) -> str | None:
        return self._default_among(self._remote("HEAD"))

    def why_default(self) -> str:
        return "HEAD of the repository on the server"

    def branches(self) -> Iterator[str]:
        names = self._remote("refs/heads/*")
        yield from (name.removeprefix("refs/heads/") for name in names if " " not in name)

    def lineage(self, old: str, new: str) -> Lineage:
        self._bring(new)
        return self._mirror.lineage(old, new)

    def mailmap(self, head: str) -> bytes:
        self._bring(head)
        return self._mirror.mailmap(head)

    def pages(self, wanted: Range, *, mark: str | None = None) -> Iterator[CommitPage]:
        self._bring(wanted.new)
        return self._mirror.pages(wanted, mark=mark)

    def ids(self, head: str) -> Iterator[Sequence[str]]:
        self._bring(head)
        return self._mirror.ids(head)

    def close(self) -> None:
        self._mirror.close()

    def _remote(self, *patterns: str) -> dict[str, str]:
        answer = self._git.ask(None, "ls-remote", "--symref", "--", self._url, *patterns)
        if answer.code != 0:
            raise refusal(answer)
        return parse_refs(answer.output)

    def _default_among(self, refs: dict[str, str]) -> str | None:
        """`ref: refs/heads/main HEAD` is how a server tells its default branch."""
        name = next((text for text in refs if text.endswith(" HEAD")), "")
        return name.removesuffix(" HEAD").removeprefix("refs/heads/") or None

    def _bring(self, sha: str) -> None:
        """Have a commit in the mirror; fetches only what is missing."""
        with self._lock:
            if self._folder.is_dir() and self._mirror.has(sha):
                return
            self._prepare()
            self._fetch()
            if not self._mirror.has(sha):
                raise SourceUnavailable(
                    "the branch moved while it was being fetched", code="branch_moved"
                )

    def _prepare(self) -> None:
        self._folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        answer = self._git.ask(None, "init", "--quiet", "--bare", "--", str(self._folder))
        if answer.code != 0:
            raise refusal(answer)

    def _fetch(self) -> None:
        answer = self._fetching.ask(
            self._folder,
            "fetch",
            "--quiet",
            "--prune",
            "--no-tags",
            "--no-write-fetch-head",
            "--",
            self._url,
            "+refs/heads/*:refs/heads/*",
        )
        if answer.code != 0:
            raise refusal(answer)
