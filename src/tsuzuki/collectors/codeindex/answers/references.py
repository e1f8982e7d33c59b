"""Where a name is used, and how sure it is that a use means a certain definition.

Every identifier of the name is a use. It is exact if the text shows which definition it means: by its scope, its import
or what stands before its dot. Anything else is a use by name. A use never means a definition of another family of
languages.

The index says which files mention the name. They are parsed when the question comes.
"""

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import Any

from tsuzuki.collectors.codeindex.answers.confidence import Confidence
from tsuzuki.collectors.codeindex.answers.definitions import definitions_of
from tsuzuki.collectors.codeindex.answers.freshness import FreshFile, FreshFiles
from tsuzuki.collectors.codeindex.answers.resolution.resolver import ScopeResolver
from tsuzuki.collectors.codeindex.answers.resolution.scoped_file import RULES
from tsuzuki.collectors.codeindex.answers.symbol import Site, family_of
from tsuzuki.collectors.codeindex.answers.syntax_trees import SyntaxTrees
from tsuzuki.collectors.codeindex.answers.text_resolver import TextResolver
from tsuzuki.collectors.codeindex.queries import lookups
from tsuzuki.collectors.codeindex.queries.lookups import Symbol
from tsuzuki.model.clock import Clock, SystemClock

LINE_LENGTH_MAX = 300
SECONDS_MAX = 8.0
"""For the files of one answer. A name that thousands of files have is better asked for in a part of the tree."""

_CLOCK = SystemClock()


@dataclass(frozen=True, kw_only=True)
class ReferenceLine:
    """A use of a name, with its line."""

    path: str
    line: int
    column: int
    kind: str
    name: str
    container: str
    text: str
    confidence: Confidence
    definition: str | None
    """`path:line` of the definition that is meant, if that is exact."""

    definitions: int

    def as_dict(self) -> dict[str, Any]:
        return {
            "place": f"{self.path}:{self.line}",
            **asdict(self),
            "exact": self.confidence.is_exact,
        }


@dataclass(frozen=True, kw_only=True)
class ReferenceQuery:
    """What is asked for. With `targets` exact uses of other definitions are left out."""

    name: str
    targets: frozenset[Symbol] = frozenset()
    kinds: frozenset[str] = frozenset()
    path_filter: Callable[[str], bool] = lambda _path: True


@dataclass(frozen=True, kw_only=True)
class FoundReferences:
    """The uses that were found, by path and line."""

    uses: list[ReferenceLine]
    files_left_out: int = 0
    """Files that may use the name and were not looked at, because there was no time left."""

    @property
    def exact(self) -> int:
        """How many are exact."""
        return sum(one.confidence.is_exact for one in self.uses)


def find_references(
    files: FreshFiles,
    query: ReferenceQuery,
    *,
    changed: Iterable[str] = (),
    clock: Clock = _CLOCK,
) -> FoundReferences:
    """Every use of the name in the files that mention it, for as long as `SECONDS_MAX`."""
    changed = frozenset(changed)
    definitions = definitions_of(files, [query.name], changed=changed)
    found = lookups.paths_that_mention(files.connection, query.name) if files.connection else []
    paths = sorted({*found, *changed, *(symbol.path for symbol in definitions)})
    trees = SyntaxTrees(files)
    resolver = Resolver(trees, query.name, definitions, changed=changed)
    families = {family_of(symbol.language) for symbol in query.targets or definitions}
    wanted = [path for path in paths if query.path_filter(path)]
    deadline = clock.monotonic() + SECONDS_MAX
    uses: list[ReferenceLine] = []
    for number, path in enumerate(wanted):
        if clock.monotonic() > deadline:
            return FoundReferences(uses=uses, files_left_out=len(wanted) - number)
        file = files.get(path)
        if file and (not families or family_of(file.language) in families):
            uses += _uses_in(file, query, trees, resolver)
    return FoundReferences(uses=uses)


def _uses_in(
    file: FreshFile, query: ReferenceQuery, trees: SyntaxTrees, resolver: "Resolver"
) -> list[ReferenceLine]:
    return [
        reference
        for site in trees.sites(file, query.name)
        if not query.kinds or site.kind in query.kinds
        if (reference := resolver.reference(file, site, query.targets)) is not None
    ]


class Resolver:
    """Decides which definition of one name a use means: by scopes, or by text where a language's are not known."""

    def __init__(
        self,
        trees: SyntaxTrees,
        name: str,
        definitions: Iterable[Symbol],
        *,
        changed: frozenset[str],
    ) -> None:
        self._scopes = ScopeResolver(trees, changed=changed)
        self._definitions: dict[str, list[Symbol]] = {}
        for symbol in definitions:
            self._definitions.setdefault(family_of(symbol.language), []).append(symbol)
        known = [one for found in self._definitions.values() for one in found]
        self._places = {(one.path, one.line, one.column) for one in known}
        self._texts = TextResolver(
            trees, name, [one for one in known if family_of(one.language) not in RULES]
        )

    def reference(
        self, file: FreshFile, site: Site, targets: frozenset[Symbol]
    ) -> ReferenceLine | None:
        """The use with its confidence; None if it is the definition itself or means none of the targets."""
        if (site.path, site.line, site.column) in self._places:
            return None
        known = self._definitions.get(family_of(site.language), [])
        confidence, symbols = self._resolve(file, site, known)
        if targets and symbols and targets.isdisjoint(symbols):
            return None
        return ReferenceLine(
            path=site.path,
            line=site.line,
            column=site.column,
            kind=site.kind,
            name=site.name,
            container=site.container,
            text=file.source.line(site.line).strip()[:LINE_LENGTH_MAX],
            confidence=confidence,
            definition=f"{symbols[0].path}:{symbols[0].line}" if symbols else None,
            definitions=len(known),
        )

    def _resolve(
        self, file: FreshFile, site: Site, known: list[Symbol]
    ) -> tuple[Confidence, tuple[Symbol, ...]]:
        if not known:
            return Confidence.BY_NAME, ()
        if family_of(site.language) in RULES:
            symbols = self._scopes.meaning(file, site)
            return _confidence(site, symbols), symbols
        confidence, meant = self._texts.resolve(file, site, known)
        return confidence, (meant,) if meant else ()


def _confidence(site: Site, symbols: tuple[Symbol, ...]) -> Confidence:
    if not symbols:
        return Confidence.BY_NAME
    if any(one.path == site.path for one in symbols):
        return Confidence.SAME_FILE
    folders = {one.path.rpartition("/")[0] for one in symbols}
    is_near = site.language == "go" and folders == {site.path.rpartition("/")[0]}
    return Confidence.SAME_PACKAGE if is_near else Confidence.IMPORTED
