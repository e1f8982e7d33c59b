"""The indexes that questions are answered from: found, built in the background, and kept up to date.

A tree that was never indexed is built with the first question about it, one that was is caught up with, and from
then on it is watched. There is one build per tree at a time and one watcher at work, however many servers run: the
index file decides.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar, cast

from tsuzuki.collectors.codeindex.service.answers import CodeAnswers, IndexAnswer, IndexState
from tsuzuki.collectors.codeindex.service.builds import BuildJob, Builds, IndexStatus, StartedBuild
from tsuzuki.collectors.codeindex.service.trees import Tree, Trees
from tsuzuki.collectors.codeindex.service.watcher import Watcher
from tsuzuki.collectors.codeindex.tools.refusals import refused
from tsuzuki.mcp.tool import ServerState, ToolCall
from tsuzuki.model.errors import NotPermitted, TsuzukiError

Value = TypeVar("Value")
FIRST_BUILD_SECONDS = 2.0
"""How long the first question waits for a build: a small tree is answered in full, a large one in part."""

STOP_SECONDS = 5.0
_NO_INDEX = ("index_missing", "index_corrupt")


class Indexes(Protocol):
    """The trees that a server answers about. Every method may be called from any thread."""

    def tree(self, call: ToolCall) -> Tree:
        """The tree that a call is about. Raises what is wrong with it, and `NotPermitted` for one of others."""

    def ask(
        self, call: ToolCall, tree: Tree, question: Callable[[CodeAnswers], IndexAnswer[Value]]
    ) -> IndexAnswer[Value]:
        """Ask about a tree."""

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
                    f"this server answers about {own} only",
                    hint="Another tree needs a server of its own, on stdio or with a root of its own.",
                    code="root_refused",
                )
            return tree

    def ask(
        self, call: ToolCall, tree: Tree, question: Callable[[CodeAnswers], IndexAnswer[Value]]
    ) -> IndexAnswer[Value]:
        """Ask about a tree. An index that is missing or corrupt is built, and does for a part of the answer."""
        with refused(call):
            self.start_watching(tree.root)
            answers = self.trees.answers(tree, live=self._watchers[tree.root].live)
            try:
                return question(answers)
            except TsuzukiError as problem:
                if problem.specific_code not in _NO_INDEX:
                    raise
            self.builds.jobs.wait(self.build(tree.root).id, FIRST_BUILD_SECONDS)
            return question(answers)

    def start_watching(self, root: Path) -> None:
        """Build or catch up in the background, and watch from then on; once for each tree."""
        with self._lock:
            if root in self._watchers:
                return
            self._watchers[root] = Watcher(root, builds=self.builds)
        is_first = not self.trees.is_indexed(root)
        started = self.build(root)
        self._watchers[root].start()
        if is_first:
            self.builds.jobs.wait(started.id, FIRST_BUILD_SECONDS)

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
