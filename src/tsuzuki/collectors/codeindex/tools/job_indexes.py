"""The indexes of the trees of jobs, for callers from outside: they can ask about these trees and about no other.

The jobs keep the indexes up to date, and nothing is watched. Only a tree that was never indexed is built with the
first question about it, by a process of its own, if the principal may build.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from tsuzuki.collectors.codeindex.rights import CODE_BUILD
from tsuzuki.collectors.codeindex.service.answers import CodeAnswers
from tsuzuki.collectors.codeindex.service.builds import BuildJob, IndexStatus, StartedBuild
from tsuzuki.collectors.codeindex.service.job_trees import JobTree, JobTrees
from tsuzuki.collectors.codeindex.service.trees import Tree
from tsuzuki.collectors.codeindex.tools.indexes import FIRST_BUILD_SECONDS
from tsuzuki.collectors.codeindex.tools.refusals import refused
from tsuzuki.mcp.tool import ToolCall
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.wiring.application import Application

LOOK_SECONDS = 0.05


class JobIndexes:
    """`Indexes` of a web server, for the principal of one request."""

    def __init__(self, trees: JobTrees) -> None:
        self._trees = trees

    @classmethod
    def of(cls, application: Application) -> Self:
        """The indexes of a workspace's jobs, for the actor of the application."""
        return cls(application.service("codeindex"))

    def tree(self, call: ToolCall) -> Tree:
        with refused(call):
            tree, scope = self._trees.place(call.get("path"))
            return Tree(root=tree.root, scope=scope)

    @contextmanager
    def answers(self, call: ToolCall, tree: Tree) -> Iterator[CodeAnswers]:
        with refused(call):
            job_tree = self._trees.get(str(tree.root))
            may_build = call.state.may(CODE_BUILD)
            if not job_tree.is_indexed and may_build:
                self._build_first(call, job_tree)
            try:
                yield self._trees.answers(job_tree, tree.scope)
            except TsuzukiError as problem:
                if problem.specific_code == "index_missing" and not may_build:
                    problem.hint = f"A token with the scope {CODE_BUILD} can start a build."
                raise

    def build(
        self, root: Path, *, paths: Sequence[str] = (), is_forced: bool = False
    ) -> StartedBuild:
        return self._trees.build(self._trees.get(str(root)), paths=paths, is_forced=is_forced)

    def job(self, root: Path, job_id: str) -> BuildJob | None:
        return self._trees.find_job(root, job_id)

    def status(self, root: Path) -> IndexStatus:
        return self._trees.status(self._trees.get(str(root)))

    def close(self) -> None:
        """A build goes on in its own process."""

    def _build_first(self, call: ToolCall, tree: JobTree) -> None:
        started, clock = self._trees.build(tree), SystemClock()
        deadline = clock.monotonic() + FIRST_BUILD_SECONDS
        while clock.monotonic() < deadline:
            job = self.job(tree.root, started.id)
            if job is None or job.status != "running":
                return
            if clock.wait(call.state.is_closing, LOOK_SECONDS):
                return
