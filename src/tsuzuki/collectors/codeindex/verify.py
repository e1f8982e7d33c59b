"""Verification of code indexes: every file of a tree is indexed as it is on disk, by the hash of its content.

A file that was edited after the last build differs too: then the index does not answer for it, until the next build.
"""

import os
from collections.abc import Iterator
from pathlib import Path

from tsuzuki.collectors.codeindex.index_file import IndexFile, index_folder
from tsuzuki.collectors.codeindex.options import CodeIndexOptions
from tsuzuki.collectors.codeindex.parsing.parse import ParseLimits, hash_file
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileOutcome
from tsuzuki.collectors.codeindex.queries import files, meta
from tsuzuki.collectors.codeindex.queries.files import KnownFile
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.collectors.codeindex.tree.roots import real_path, usable_root
from tsuzuki.collectors.codeindex.tree.scan import scan_tree
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.model.verification import Comparison, FaultKind, Verified
from tsuzuki.wiring.collector import VerifyContext

PAGE = 1000
LIMITS = ParseLimits()


def verify(context: VerifyContext) -> Iterator[Verified]:
    """One subject for each tree of the jobs."""
    named = [
        context.workspace / Path(root).expanduser()
        for job in context.jobs
        for root in CodeIndexOptions.model_validate(job.options).roots
    ]
    for root in dict.fromkeys(map(real_path, named)):
        comparison = Comparison(str(root))
        try:
            yield _verified(context, usable_root(root), comparison)
        except TsuzukiError as error:
            yield comparison.result(problem=error.message)


def _verified(context: VerifyContext, root: Path, comparison: Comparison) -> Verified:
    status = Builds(clock=context.database.clock).status(root)
    if status.state != "ready":
        return comparison.result(problem=_NOT_READY[status.state])
    index = IndexFile.open_existing(root, folder=index_folder())
    if index is None:
        return comparison.result(problem=_NOT_READY["missing"])
    with index, index.reading():
        _compare_indexed(context, root, index, comparison)
        if meta.unlisted_folders(index.connection):
            note = (
                "git does not list all files of the tree, so files missing from the index are not "
                "detected"
            )
            return comparison.result(note=note)
        _compare_present(context, root, index, comparison)
    return comparison.result()


_NOT_READY = {
    "missing": "not indexed yet",
    "building": "a build is in progress; verify again after it ends",
    "incomplete": "no build has been completed",
}


def _compare_indexed(
    context: VerifyContext, root: Path, index: IndexFile, comparison: Comparison
) -> None:
    after = ""
    while page := files.known_page(index.connection, after=after, limit=PAGE):
        for file in page:
            if (fault := _fault_of(root, file)) is not None:
                comparison.add(*fault)
        comparison.compared += len(page)
        context.advance(len(page))
        after = page[-1].path


def _fault_of(root: Path, file: KnownFile) -> tuple[FaultKind, str] | None:
    hashed = hash_file(os.fspath(root), file.path, LIMITS)
    if hashed is not None:
        is_same = hashed.hash == file.hash
        return None if is_same else (FaultKind.CHANGED, f"the index of {file.path} is outdated")
    if file.outcome is FileOutcome.UNREADABLE:
        return None
    if not os.path.lexists(root / file.path):
        return FaultKind.UNKNOWN, f"{file.path} is indexed but not in the tree"
    return FaultKind.CHANGED, f"{file.path} is indexed but cannot be read"


def _compare_present(
    context: VerifyContext, root: Path, index: IndexFile, comparison: Comparison
) -> None:
    """Look for files of the tree that are not indexed, as a build would find them."""
    scan = scan_tree(root, on_tick=lambda: context.advance(0))
    for first in range(0, len(scan.files), PAGE):
        paths = [file.path for file in scan.files[first : first + PAGE]]
        indexed = files.indexed_among(index.connection, paths)
        for path in paths:
            if path not in indexed:
                comparison.add(FaultKind.MISSING, f"{path} is not indexed")
                comparison.compared += 1
