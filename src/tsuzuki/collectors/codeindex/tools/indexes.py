"""The indexes that questions are answered from: found, built in the background, and kept up to date.

A tree that was never indexed is built with the first question about it, one that was is caught up with, and from
then on it is watched. There is one build per tree at a time and one watcher at work, however many servers run: the
index file decides.
"""

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, Protocol, cast

from tsuzuki.collectors.codeindex.service.answers import CodeAnswers, IndexState
from tsuzuki.collectors.codeindex.service.builds import BuildJob, Builds, IndexStatus, StartedBuild
from tsuzuki.collectors.codeindex.service.trees import Tree, Trees
from tsuzuki.collectors.codeindex.service.watcher import Watcher
from tsuzuki.collectors.codeindex.tools.refusals import refused
from tsuzuki.mcp.tool import ServerState, ToolCall
from tsuzuki.model.errors import NotPermitted

FIRST_BUILD_SECONDS = 2.0
"""How long the first question waits for a build: a small tree is answered in full, a large one in part."""

STOP_SECONDS = 5.0


class Indexes(Protocol):
    """The trees that a server answers about. Every method may be called from any thread."""

    def tree(self, call: ToolCall) -> Tree:
        """The tree that a call is about. Raises what is wrong with it, and `NotPermitted` for one of others."""

    def answers(self, call: ToolCall, tree: Tree) -> AbstractContextManager[CodeAnswers]:
        """Around questions about a tree: an error says which call to make next."""

    def build(
        self, root: Path, *, paths: Sequence[str] = (), is_forced: bool = False
    ) -> StartedBuild:
        """Start a build, or name the one that runs. `paths` are files and folders; without any, all are meant."""

    def job(self, root: Path, job_id: str) -> BuildJob | None:
        """A build that runs, or that ended in the last five minutes."""

    def status(self, root: Path) -> IndexStatus:
        """How the index of a tree is."""


class CodeIndexes:
    """The trees of a server that its user started: any tree that the user can read."""

    def __init__(self, state: ServerState) -> None:
        self.trees = Trees(
            root=state.root, cwd=state.cwd, environ=state.environ, is_confined=state.is_confined
        )
        self.builds = Builds(environ=state.environ)
        self._is_confined = state.is_confined
        self._lock = threading.Lock()
        self._watchers: dict[Path, Watcher] = {}
        self._started: set[str] = set()

    def tree(self, call: ToolCall) -> Tree:
        with refused(call):
            tree = self.trees.find(call.get("path"))
            own = self.trees.default().root if call.state.is_confined else tree.root
            if not tree.root.is_relative_to(own):
                raise NotPermitted(
                    f"this server only answers questions about {own}",
                    hint="For another tree, start a separate server on stdio or with another --root.",
                    code="root_refused",
                )
            return tree

    @contextmanager
    def answers(self, call: ToolCall, tree: Tree) -> Iterator[CodeAnswers]:
        """Around questions about a tree. An index that is missing or corrupt is built first; what there is of it after
        two seconds does for a partial answer."""
        with refused(call):
            is_usable = self.trees.has_usable_index(tree.root)
            started = self.start_watching(tree.root)
            if not is_usable:
                started = started or self.build(tree.root)
                self.builds.jobs.wait(started.id, FIRST_BUILD_SECONDS)
            yield self.trees.answers(tree, live=self._watchers[tree.root].live)

    def start_watching(self, root: Path) -> StartedBuild | None:
        """Build or catch up in the background, and watch from then on; once for each tree: None if it is watched."""
        with self._lock:
            if root in self._watchers:
                return None
            self._watchers[root] = Watcher(root, builds=self.builds)
        started = self.build(root)
        self._watchers[root].start()
        return started

    def build(
        self, root: Path, *, paths: Sequence[str] = (), is_forced: bool = False
    ) -> StartedBuild:
        started = self.builds.start(root, paths=paths, is_forced=is_forced)
        if started.is_new:
            self._started.add(started.id)
        return started

    def job(self, root: Path, job_id: str) -> BuildJob | None:
        return self.builds.job(root, job_id)

    def status(self, root: Path) -> IndexStatus:
        status = self.builds.status(root)
        return status.for_callers_from_outside() if self._is_confined else status

    def close(self) -> None:
        """End the watchers and cancel the builds of this server. What they stored is kept."""
        with self._lock:
            watchers = [*self._watchers.values()]
        for watcher in watchers:
            watcher.close(STOP_SECONDS)
        running = [one for one in self._started if self.builds.jobs.cancel(one)]
        for one in running:
            self.builds.jobs.wait(one, STOP_SECONDS)


def indexes_of(state: ServerState) -> Indexes:
    return cast("Indexes", state.part("code", CodeIndexes))


def catch_up(state: ServerState) -> None:
    """After the start: a tree that was indexed before is brought up to date before it is asked about."""
    indexes: CodeIndexes = state.part("code", CodeIndexes)
    root = indexes.trees.default().root
    if indexes.trees.is_indexed(root):
        indexes.start_watching(root)


def index_part(index: IndexState) -> dict[str, Any]:
    """What both channels say of the index."""
    part: dict[str, Any] = {
        "state": index.state,
        "at": index.at,
        "head": index.head,
        "pending": index.pending,
        "reread": index.reread,
    }
    if index.unlisted_folders:
        part["unlisted_folders"] = [*index.unlisted_folders]
    return part if index.percent is None else {**part, "percent": index.percent}
