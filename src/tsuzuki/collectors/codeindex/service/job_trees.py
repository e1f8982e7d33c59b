"""The trees of the codeindex jobs: the only ones that a caller from outside may ask about or have built.

Which folders these are is said by the jobs; a request names one of them and never another folder.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from tsuzuki.collectors.codeindex.index_file import index_path
from tsuzuki.collectors.codeindex.lsp.settings import LspCommands, as_command
from tsuzuki.collectors.codeindex.options import CodeIndexOptions
from tsuzuki.collectors.codeindex.queries.files import ListedFile
from tsuzuki.collectors.codeindex.service.answers import CodeAnswers, index_unlisted
from tsuzuki.collectors.codeindex.service.builds import (
    BuildJob,
    Builds,
    IndexEntry,
    IndexStatus,
    StartedBuild,
)
from tsuzuki.collectors.codeindex.tree.roots import real_path, usable_root
from tsuzuki.model.errors import NotFound, NotPermitted, UsageError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.store import audit
from tsuzuki.wiring.collector import ServiceContext

HANDLER = "codeindex"


@dataclass(frozen=True, kw_only=True)
class JobTree:
    """A root of a job. It need not exist."""

    root: Path
    job: str
    lsp: LspCommands
    is_indexed: bool


class JobTrees:
    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    @cached_property
    def _builds(self) -> Builds:
        return Builds(clock=self._context.database.clock)

    def find(self) -> list[JobTree]:
        """Each tree once, by root; of a tree of several jobs, the first job by name."""
        found: dict[Path, JobTree] = {}
        for view in self._context.jobs.find_by_handler(HANDLER):
            options = CodeIndexOptions.model_validate(view.spec.options)
            lsp = {language: as_command(words) for language, words in options.lsp.items()}
            for text in options.roots:
                root = real_path(self._context.workspace / Path(text).expanduser())
                is_indexed = index_path(root, self._builds.folder).exists()
                tree = JobTree(root=root, job=view.name, lsp=lsp, is_indexed=is_indexed)
                found.setdefault(root, tree)
        return [found[root] for root in sorted(found)]

    def get(self, named: str | None) -> JobTree:
        """The tree with this root, usable; without a name the only one there is. Raises `NotFound`."""
        trees = self.find()
        if named is None and len(trees) == 1:
            (tree,) = trees
        else:
            tree = _named(trees, named)
        usable_root(tree.root)
        return tree

    def place(self, named: str | None) -> tuple[JobTree, str]:
        """The tree that a path lies in, and the folder or file of it; a relative one starts at the only tree. The
        same is raised for every path outside of the trees, whether it exists or not."""
        if named is None or (not Path(named).is_absolute() and len(self.find()) != 1):
            return self.get(None), ""
        trees = self.find()
        path = real_path((trees[0].root if trees else Path("/")) / named)
        inside = [tree for tree in trees if path.is_relative_to(tree.root)]
        if not inside:
            roots = ", ".join(str(tree.root) for tree in trees)
            raise NotPermitted(
                "this server only answers questions about the trees of its jobs",
                hint=f"Trees: {roots}" if roots else "No job indexes a tree.",
                code="root_refused",
            )
        tree = max(inside, key=lambda one: len(one.root.parts))
        scope = path.relative_to(tree.root).as_posix()
        return self.get(str(tree.root)), "" if scope == "." else scope

    def answers(self, tree: JobTree, scope: str = "") -> CodeAnswers:
        """Asks about a tree, or the folder or file of it that is meant."""
        inside = tree.root / scope
        return CodeAnswers(
            tree.root,
            cwd=inside if inside.is_dir() else tree.root,
            folder=self._builds.folder,
            clock=self._context.database.clock,
            scope=scope,
            is_confined=True,
        )

    def build(
        self, tree: JobTree, *, paths: Sequence[str] = (), is_forced: bool = False
    ) -> StartedBuild:
        """Start a build in a process of its own, or name the one that runs. See `Builds.start`."""
        started = self._builds.start_detached(
            tree.root, lsp=tree.lsp, paths=paths, is_forced=is_forced
        )
        if started.is_new:
            self._record("codeindex.build", tree)
        return started

    def _record(self, action: str, tree: JobTree) -> None:
        with self._context.database.write() as connection:
            audit.record(
                connection,
                actor=self._context.actor,
                action=action,
                object_type="tree",
                object_id=str(tree.root),
            )

    def status(self, tree: JobTree) -> IndexStatus:
        return self._builds.status(tree.root).for_callers_from_outside()

    def files(
        self,
        tree: JobTree,
        *,
        limit: int,
        outcome: str | None = None,
        language: str | None = None,
        after: str | None = None,
    ) -> list[ListedFile]:
        """Files of the index of a tree, by path. Raises `Unreachable` if git ignores some of them perhaps."""
        if not self._builds.status(tree.root).is_listed:
            raise index_unlisted(tree.root)
        return self._builds.files(
            tree.root, outcome=outcome, language=language, after=after, limit=limit
        )

    def entry(self, tree: JobTree) -> IndexEntry | None:
        """The index file of a tree; None if there is none."""
        return self._builds.entry(tree.root)

    def remove(self, tree: JobTree) -> None:
        """Remove the index of a tree; the tree itself is not touched. Raises `NotFound` if there is none."""
        entry = self.entry(tree)
        if entry is None:
            raise NotFound(f"there is no index of {tree.root}", code="no_index")
        self._builds.remove(entry)
        self._record("codeindex.remove", tree)

    def find_job(self, root: Path, build_id: str) -> BuildJob | None:
        return self._builds.job(root, build_id)

    def job(self, tree: JobTree, build_id: str) -> BuildJob:
        """A build that runs, or that ended in the last five minutes. Raises `NotFound`."""
        found = self.find_job(tree.root, build_id)
        if found is None:
            raise NotFound(
                f"there is no build {build_id} of {tree.root}",
                hint="A build is remembered for five minutes after its end.",
                code="build_unknown",
            )
        return found


def _named(trees: list[JobTree], named: str | None) -> JobTree:
    known = [str(tree.root) for tree in trees]
    if named is None and trees:
        raise UsageError(
            f"there are {len(trees)} trees",
            hint=f"Choose one: {', '.join(known)}",
            code="tree_missing",
        )
    for tree in trees:
        if str(tree.root) == named:
            return tree
    raise NotFound(
        "no job indexes a tree" if named is None else f"no job indexes the tree {named!r}",
        hint=(did_you_mean(named, known) if named else "")
        + "Add a job of type codeindex with the tree as a root.",
        code="tree_unknown",
    )
