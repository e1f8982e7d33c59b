"""Questions about a tree: search, read, references, outline, map. Each answer is checked against the files.

Asking needs no workspace and no engine. Without an index, what needs none is answered: text, a file's outline, its
lines.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from tsuzuki.collectors.codeindex.answers.changed_files import TreeChanges
from tsuzuki.collectors.codeindex.answers.freshness import FreshFile, FreshFiles
from tsuzuki.collectors.codeindex.answers.map import RankedFile, code_map
from tsuzuki.collectors.codeindex.answers.outline import OutlineEntry, outline
from tsuzuki.collectors.codeindex.answers.path_filter import PathFilter
from tsuzuki.collectors.codeindex.answers.read import (
    Excerpt,
    matching_symbols,
    read_lines,
    read_symbol,
)
from tsuzuki.collectors.codeindex.answers.references import (
    FoundReferences,
    ReferenceLine,
    ReferenceQuery,
    find_references,
)
from tsuzuki.collectors.codeindex.answers.regex_process import search_regex_in_process
from tsuzuki.collectors.codeindex.answers.search import is_test, search_names
from tsuzuki.collectors.codeindex.answers.search_request import (
    FoundSymbols,
    IndexSearch,
    known_words,
)
from tsuzuki.collectors.codeindex.answers.snapshots import IndexState, Snapshot, snapshots
from tsuzuki.collectors.codeindex.answers.symbol import SymbolPath
from tsuzuki.collectors.codeindex.answers.text_search import FoundLine, search_text
from tsuzuki.collectors.codeindex.answers.tree_path import find_path
from tsuzuki.collectors.codeindex.extract import SymbolKind, language_of
from tsuzuki.collectors.codeindex.index_file import IndexFile, index_folder, index_path
from tsuzuki.collectors.codeindex.queries import meta
from tsuzuki.collectors.codeindex.queries.lookups import Symbol
from tsuzuki.collectors.codeindex.tree.roots import find_root
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.model.errors import FileUnusable, NotFound, TsuzukiError, UsageError
from tsuzuki.model.suggestion import did_you_mean

if TYPE_CHECKING:
    from tsuzuki.collectors.codeindex.watch.live_tree import LiveTree

__all__ = [
    "CodeAnswers",
    "Excerpt",
    "FoundSymbols",
    "IndexAnswer",
    "IndexState",
    "OutlineEntry",
    "RankedFile",
    "ReferenceLine",
]

Value = TypeVar("Value")
REFERENCE_KINDS = ("call", "type", "import", "inherit", "read")
_LINES = re.compile(r"(\d{1,9})(?:-(\d{1,9}))?")


@dataclass(frozen=True, kw_only=True)
class IndexAnswer(Generic[Value]):
    value: Value
    index: IndexState


class CodeAnswers:
    """Answers about one tree."""

    def __init__(
        self,
        root: Path,
        *,
        cwd: Path,
        folder: Path | None = None,
        clock: Clock | None = None,
        scope: str = "",
        is_confined: bool = False,
        live: "LiveTree | None" = None,
    ) -> None:
        self.root = root
        self.scope = scope
        """The folder or file that answers are about; empty for the whole tree."""

        self._cwd = cwd
        self._folder = folder
        self._clock = clock or SystemClock()
        self._is_confined = is_confined
        """Whether files that are never indexed, such as ignored ones and those of git itself, are not read either."""

        self._live = live
        """What a watcher in this process knows of the tree: without it, each question walks the tree."""

    @classmethod
    def of(cls, named: str | None, *, cwd: Path, environ: Mapping[str, str]) -> "CodeAnswers":
        """Of the tree that is named, or around the current folder."""
        root = find_root(named, cwd=cwd, environ=environ)
        return cls(root, cwd=cwd.absolute(), folder=index_folder(environ))

    def search(self, text: str, **said: Any) -> IndexAnswer[FoundSymbols]:
        """Definitions whose names match, and lines that have the text."""
        search = IndexSearch(text=text, **said)
        path_filter = PathFilter(search.paths, scope=self.scope)
        query = search.name_query(path_filter)
        line_query = search.text_query(path_filter)
        if query is None and line_query is None:
            raise UsageError(
                f"{search.text!r} is not a symbol name",
                hint="For example: Class/part",
                code="bad_symbol",
            )

        is_in_process = self._is_confined and search.regex
        search_lines = search_regex_in_process if is_in_process else search_text
        for snapshot in self._snapshots(needs_index=line_query is None):
            with snapshot:
                files, changes = snapshot.compare()
                names, lines, has_more = None, list[FoundLine](), False
                if query:
                    names = search_names(files, query, limit=search.limit, changed=changes.paths)
                if line_query:
                    lines, has_more = search_lines(
                        self.root,
                        line_query,
                        limit=search.lines_limit or search.limit,
                        scanned=changes.scanned,
                        listed=changes.listed,
                    )
        found = FoundSymbols(names=names, lines=lines, has_more_lines=has_more)
        return IndexAnswer(value=found, index=snapshot.state)

    def read(
        self, texts: Sequence[str], *, lines: str | None = None, whole: bool = False
    ) -> IndexAnswer[list[Excerpt]]:
        """The source of symbols (`Class/method[i]`, `file:name`) or of files (`file`, `file:10-20`)."""
        for snapshot in self._snapshots():
            with snapshot:
                snapshot.compare()
                found = [self._read_one(snapshot, text, lines=lines, whole=whole) for text in texts]
        return IndexAnswer(value=found, index=snapshot.state)

    def read_each(
        self, texts: Sequence[str], *, lines: str | None = None
    ) -> IndexAnswer[list[Excerpt | TsuzukiError]]:
        """As `read`; in place of what cannot be read stands the error that says why."""
        for snapshot in self._snapshots():
            with snapshot:
                snapshot.compare()
                found = [self._read_or_problem(snapshot, text, lines=lines) for text in texts]
        return IndexAnswer(value=found, index=snapshot.state)

    def _read_or_problem(
        self, snapshot: Snapshot, text: str, *, lines: str | None
    ) -> Excerpt | TsuzukiError:
        try:
            return self._read_one(snapshot, text, lines=lines, whole=False)
        except TsuzukiError as problem:
            return problem

    def _read_one(
        self, snapshot: Snapshot, text: str, *, lines: str | None, whole: bool
    ) -> Excerpt:
        files, changes = snapshot.files, snapshot.changes
        file, rest = self._split(files, changes, text)
        if file is None:
            if lines is not None or ("/" in text and is_source(text)):
                raise self._no_such_file(changes, text)
            self._require_index(files, text)
            return read_symbol(files, text, changed=changes.paths, whole=whole)
        wanted = lines or rest
        if not wanted:
            return read_lines(file, 1, max(file.source.line_count, 1))
        if span := _LINES.fullmatch(wanted):
            return read_lines(file, int(span[1]), int(span[2] or span[1]))
        if lines is not None:
            raise UsageError(
                f"invalid lines {lines!r}", hint="For example: 10-20", code="bad_lines"
            )
        return read_symbol(files, rest, file=file, whole=whole)

    def references(
        self,
        text: str,
        *,
        kinds: Sequence[str] = (),
        paths: Sequence[str] = (),
        tests: bool = True,
    ) -> IndexAnswer[FoundReferences]:
        """Where the symbol of a name, a path or `file:name` is used."""
        path_filter = PathFilter(paths, scope=self.scope)
        wanted = known_words("kind", kinds, REFERENCE_KINDS)

        for snapshot in self._snapshots(needs_index=True):
            with snapshot:
                files, changes = snapshot.compare()
                name, targets = self._meant(files, changes, text)
                query = ReferenceQuery(
                    name=name,
                    targets=targets,
                    kinds=wanted,
                    path_filter=lambda path: path_filter(path) and (tests or not is_test(path)),
                )
                found = find_references(files, query, changed=changes.paths, clock=self._clock)
        return IndexAnswer(value=found, index=snapshot.state)

    def _meant(
        self, files: FreshFiles, changes: TreeChanges, text: str
    ) -> tuple[str, frozenset[Symbol]]:
        """The name whose uses are wanted, and the definitions that are meant; all of that name if none."""
        file, rest = self._split(files, changes, text)
        if file is not None and not rest:
            raise UsageError(
                f"{text} is a file", hint=f"Name a symbol: {text}:name", code="bad_symbol"
            )
        name = rest if file else text
        found = matching_symbols(files, name, file=file, changed=changes.paths)
        path = SymbolPath.parse(name)
        is_narrow = file is not None or len(path.segments) > 1
        if is_narrow and not found:
            # The error names what is meant, as when it is read.
            read_symbol(files, name, file=file, changed=changes.paths)
        meant = frozenset(found) if is_narrow else frozenset()
        return found[0].name if found else path.name, meant

    def outline(
        self, text: str = "", *, depth: int | None = None, kinds: Sequence[str] = ()
    ) -> IndexAnswer[list[OutlineEntry]]:
        """The symbols of a file, or the outermost ones of the files of a folder."""
        wanted = known_words("kind", kinds, list(SymbolKind))

        for snapshot in self._snapshots():
            with snapshot:
                files, changes = snapshot.compare()
                path = find_path(self.root, text, cwd=self._cwd) if text else self.scope
                file = files.get(path) if path else None
                below = [one for one in changes.scanned if path == "" or one.startswith(f"{path}/")]
                if path is None or (path and file is None and not below):
                    raise self._no_such_file(changes, text, folders=True)
                found = outline(
                    [file] if file else files.all(one for one in below if is_source(one)),
                    depth=depth or (99 if file else 1),
                    wanted=lambda symbol: not wanted or symbol.kind in wanted,
                )
        return IndexAnswer(value=found, index=snapshot.state)

    def map(
        self, *, focus: Sequence[str] = (), limit: int = 20, symbols_max: int = 5
    ) -> IndexAnswer[list[RankedFile]]:
        """The most used files with their most used definitions; `focus` are paths and names of interest."""

        for snapshot in self._snapshots(needs_index=True):
            with snapshot:
                files, changes = snapshot.compare()
                scanned = {*changes.scanned}
                paths = [find_path(self.root, text, cwd=self._cwd) for text in focus]
                found = code_map(
                    files,
                    limit=limit,
                    symbols_max=symbols_max,
                    focus_paths=[path for path in paths if path in scanned],
                    focus_names=focus,
                    path_filter=PathFilter(scope=self.scope),
                )
        return IndexAnswer(value=found, index=snapshot.state)

    def _snapshots(self, *, needs_index: bool = False) -> Iterator[Snapshot]:
        """What an answer is made from, again until the tree kept still. Without an index, or with one that may not be
        shown, the files alone, unless the question needs it."""
        index = IndexFile.open_existing(self.root, folder=self._folder)
        with index or nullcontext():
            is_hidden = (
                index is not None
                and self._is_confined
                and "" in meta.unlisted_folders(index.connection)
            )
            if needs_index and index is None:
                raise self._index_missing()
            if needs_index and is_hidden:
                raise index_unlisted(self.root)
            yield from snapshots(
                self.root,
                None if is_hidden else index,
                clock=self._clock,
                live=self._live,
                is_confined=self._is_confined,
            )

    def _split(
        self, files: FreshFiles, changes: TreeChanges, text: str
    ) -> tuple[FreshFile | None, str]:
        """A file and what stands behind its colon; no file if there is none of that name."""
        if file := self._file(files, text):
            return file, ""
        before, colon, rest = text.rpartition(":")
        while colon:
            if file := self._file(files, before.rstrip(":")):
                return file, rest
            before, colon, more = before.rpartition(":")
            rest = f"{more}:{rest}"
        if "/" in text and ":" in text.replace("::", ""):
            raise self._no_such_file(changes, text.partition(":")[0])
        return None, text

    def _file(self, files: FreshFiles, text: str) -> FreshFile | None:
        """The file of a name, if there is one that may be shown."""
        path = find_path(self.root, text, cwd=self._cwd)
        return files.get(path) if path else None

    def _no_such_file(self, changes: TreeChanges, text: str, *, folders: bool = False) -> NotFound:
        known = [*changes.scanned]
        names = {one.rpartition("/")[2]: one for one in known}
        guess = (
            did_you_mean(text, known).strip()
            or did_you_mean(text.rpartition("/")[2], names).strip()
        )
        return NotFound(
            f"there is no file{' or folder' if folders else ''} {text!r} in {self.root}",
            hint=guess or self._where_paths_start(changes),
            code="no_such_file",
        )

    def _where_paths_start(self, changes: TreeChanges) -> str:
        if self._is_confined and changes.unlisted_folders:
            return (
                "git does not list the files of this tree, so only files it listed before are "
                f"shown. To see why, run: git -C {self.root} status"
            )
        return "Give paths relative to the current folder or to the root of the tree."

    def _require_index(self, files: FreshFiles, text: str) -> None:
        if files.connection is not None:
            return
        if index_path(self.root, self._folder or index_folder()).exists():
            raise index_unlisted(self.root)
        raise self._index_missing(
            f"{text!r} is not a file, and finding a symbol requires the index"
        )

    def _index_missing(self, why: str = "") -> NotFound:
        return NotFound(
            f"{why + ': ' if why else ''}{self.root} has no index yet",
            hint=f"Build it with: tsuzuki index build {self.root}",
            code="index_missing",
        )


def index_unlisted(root: Path) -> FileUnusable:
    """The index may have files that git ignores, which a server does not show."""
    return FileUnusable(
        f"the index of {root} was built while git could not list the files of the tree",
        hint=f"To see why, run: git -C {root} status. Then rebuild it with: tsuzuki index build "
        f"{root}",
        code="index_unlisted",
    )


def is_source(path: str) -> bool:
    """Whether the name alone tells a language that has symbols."""
    return language_of(path, b"") is not None
