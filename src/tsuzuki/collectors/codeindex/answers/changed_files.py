"""Which files of the tree the index does not have as they are: new ones, changed ones, and those it cannot be sure of.

Found by a scan, so a definition that was written a moment ago is found too. Beyond a bound they are only counted:
then a build is what is needed.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.extract import EXTRACTOR_VERSION, language_of
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileOutcome
from tsuzuki.collectors.codeindex.queries import files as stored_files
from tsuzuki.collectors.codeindex.queries import meta
from tsuzuki.collectors.codeindex.queries.files import KnownFile
from tsuzuki.collectors.codeindex.tree.doubt import is_in_doubt
from tsuzuki.collectors.codeindex.tree.git import GitListing
from tsuzuki.collectors.codeindex.tree.scan import Scan, ScannedFile, is_below, scan_tree

PARSED_FILES_MAX = 200
"""About a second of parsing."""

COMPARED_FILES_MAX = 50_000


@dataclass(frozen=True, kw_only=True)
class TreeChanges:
    """`paths` are to be looked at beside what the index says; `pending` files differ from it and are not. `listed` is
    what git lists of what was scanned. What was scanned in `unlisted_folders` may have files that git ignores."""

    scanned: Collection[str] = ()
    unlisted_folders: Sequence[str] = ()
    listed: Collection[str] = ()
    paths: list[str] = field(default_factory=list)
    pending: int = 0


@dataclass(frozen=True, kw_only=True)
class TreeWalk:
    """A whole tree beside the index: the files that the index may not have as they are are `suspects`."""

    scan: Scan
    readable: list[ScannedFile]
    suspects: list[ScannedFile]
    known: Mapping[str, KnownFile]


def tree_changes(files: FreshFiles) -> TreeChanges:
    """Compare the whole tree with the index."""
    return changes_of_walk(files, walk_tree(files))


def walk_tree(files: FreshFiles) -> TreeWalk:
    listing = GitListing(files.root)  # while the index is read
    known = stored_files.known_files(files.connection) if files.connection else {}
    scan = scan_tree(files.root, listing=listing)
    readable = [file for file in scan.files if file.problem is None]
    suspects = suspects_of(readable, known) if files.connection else []
    return TreeWalk(scan=scan, readable=readable, suspects=suspects, known=known)


def changes_of_walk(files: FreshFiles, walk: TreeWalk) -> TreeChanges:
    found = TreeChanges(
        scanned=dict.fromkeys(file.path for file in walk.readable),
        listed=walk.scan.listed,
        unlisted_folders=walk.scan.unlisted_folders,
    )
    return compared(files, found, walk.suspects, walk.known)


def only_listed(files: FreshFiles, changes: TreeChanges) -> TreeChanges:
    """The changes without files that git does not list, unless it listed them when they were indexed."""
    if not changes.unlisted_folders:
        return changes
    marked = meta.unlisted_folders(files.connection) if files.connection else []
    known = stored_files.known_files(files.connection) if files.connection else {}
    shown = {
        path: None
        for path in changes.scanned
        if not is_below(path, changes.unlisted_folders)
        or (path in known and not is_below(path, marked))
    }
    return replace(changes, scanned=shown, paths=[path for path in changes.paths if path in shown])


def suspects_of(files: Iterable[ScannedFile], known: Mapping[str, KnownFile]) -> list[ScannedFile]:
    """The files that the index may not have as they are."""
    return [file for file in files if _may_differ(file, known.get(file.path))]


def compared(
    files: FreshFiles,
    found: TreeChanges,
    suspects: Sequence[ScannedFile],
    known: Mapping[str, KnownFile],
) -> TreeChanges:
    """The same with the suspects that really differ from the index, or only their number if they are too many."""
    readable = [one for one in suspects if language_of(one.path, b"") or one.path in known]
    new = sum(one.path not in known for one in readable)
    paths: list[str] = []
    if len(readable) > COMPARED_FILES_MAX:
        pending = len(readable)
    elif new > PARSED_FILES_MAX:
        pending = sum(_differs(one, known.get(one.path)) for one in readable)
    else:
        paths = _really_changed(files, [one.path for one in readable])
        pending = len(paths)
    if pending > PARSED_FILES_MAX:
        return replace(found, pending=pending)
    return replace(found, paths=paths)


def _may_differ(file: ScannedFile, stored: KnownFile | None) -> bool:
    return (
        stored is None
        or _differs(file, stored)
        or is_in_doubt(file.mtime_ns, file.ctime_ns, read_at_ns=stored.indexed_at_ns)
    )


def _differs(file: ScannedFile, stored: KnownFile | None) -> bool:
    """Whether it is known, without reading it, that the index does not have the file as it is."""
    return (
        stored is None
        or (file.size, file.mtime_ns) != (stored.size, stored.mtime_ns)
        or stored.extractor_version != EXTRACTOR_VERSION
        or stored.outcome is FileOutcome.UNREADABLE
    )


def _really_changed(files: FreshFiles, paths: list[str]) -> list[str]:
    """Those whose content is not what the index has."""
    return [path for path in paths if (file := files.peek(path)) and file.was_parsed]
