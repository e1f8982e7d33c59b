"""Where a name is used, and how sure it is that a use means a certain definition.

A use is only exact if the text shows it: the definition is visible in the same file, the file imports it, or the
language needs no import and the tree has one definition. A use behind a dot is exact if what stands before the dot
is known. Anything else is a use by name. A use never means a definition of another family of languages.
"""

import re
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from tsuzuki.collectors.codeindex.answers.definitions import definitions_of
from tsuzuki.collectors.codeindex.answers.freshness import FreshFile, FreshFiles
from tsuzuki.collectors.codeindex.answers.import_match import (
    ImportRole,
    import_role,
    import_score,
    is_module_import,
    may_be_module,
    module_segments,
    names_module,
    statement_at,
)
from tsuzuki.collectors.codeindex.answers.local_names import is_bound_in_function
from tsuzuki.collectors.codeindex.answers.symbol import CONTAINER_KINDS, Site, Symbol, family_of
from tsuzuki.collectors.codeindex.queries import lookups

LINE_LENGTH_MAX = 300
_RECEIVER = re.compile(r"([\w$@]*)\s*(?:\?\.|\.|->|::)\s*$")
_LUA_RECEIVER = re.compile(r"(\w*)\s*[.:]\s*$")
_OWN = frozenset({"self", "cls", "this", "$this", "Self", "static"})
_IMPLICIT_OWN = frozenset({"java", "csharp", "kotlin", "swift", "scala", "cpp", "ruby"})
"""Languages in which a method calls another of its class without a receiver."""

_NEED_IMPORT = frozenset({"python", "javascript"})
"""Families in which a name of another file is only visible by import."""

_SCOPES = CONTAINER_KINDS - {"module", "namespace"}


class Confidence(StrEnum):
    """How sure it is which definition a use means."""

    SAME_FILE = "same_file"
    IMPORTED = "imported"
    ONLY_DEFINITION = "only_definition"
    BY_NAME = "by_name"
    """Only the name is the same; `definitions` tells how many it may mean."""

    @property
    def is_exact(self) -> bool:
        return self is not Confidence.BY_NAME


@dataclass(frozen=True, kw_only=True)
class Reference:
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


def find_references(
    files: FreshFiles, query: ReferenceQuery, *, changed: Iterable[str] = ()
) -> list[Reference]:
    """Every use of the name, by path and line."""
    changed = [*changed]
    definitions = definitions_of(files, [query.name], changed=changed)
    used_in = lookups.paths_that_use(files.connection, query.name) if files.connection else []
    paths = sorted({*used_in, *changed, *(symbol.path for symbol in definitions)})
    resolver = Resolver(files, query.name, definitions)
    families = {family_of(symbol.language) for symbol in query.targets or definitions}
    return [
        reference
        for file in files.all(path for path in paths if query.path_filter(path))
        if not families or family_of(file.language) in families
        for site in file.sites(query.name)
        if not query.kinds or site.kind in query.kinds
        if (reference := resolver.reference(file, site, query.targets)) is not None
    ]


class Resolver:
    """Decides which definition of one name a use means."""

    def __init__(self, files: FreshFiles, name: str, definitions: Iterable[Symbol]) -> None:
        self._name = name
        self._root = files.root
        self._definitions: dict[str, list[Symbol]] = {}
        self._members: set[Symbol] = set()
        self._declarations: set[Symbol] = set()
        self._places: set[tuple[str, int, int]] = set()
        for symbol in definitions:
            self._definitions.setdefault(family_of(symbol.language), []).append(symbol)
            self._places.add((symbol.path, symbol.line, symbol.column))
            if symbol.is_member or _is_in_class(files.get(symbol.path), symbol):
                self._members.add(symbol)
            elif _is_declaration(files.get(symbol.path), symbol):
                self._declarations.add(symbol)

    def reference(
        self, file: FreshFile, site: Site, targets: frozenset[Symbol]
    ) -> Reference | None:
        """The use with its confidence; None if it is the definition itself or means none of the targets."""
        if (site.path, site.line, site.column) in self._places:
            return None
        known = self._definitions.get(family_of(site.language), [])
        confidence, meant = self._resolve(file, site, known)
        if targets and meant is not None and meant not in targets:
            return None
        return Reference(
            path=site.path,
            line=site.line,
            column=site.column,
            kind=site.kind,
            name=site.name,
            container=site.container,
            text=file.source.line(site.line).strip()[:LINE_LENGTH_MAX],
            confidence=confidence,
            definition=f"{meant.path}:{meant.line}" if meant else None,
            definitions=len(known),
        )

    def _resolve(
        self, file: FreshFile, site: Site, known: list[Symbol]
    ) -> tuple[Confidence, Symbol | None]:
        if site.kind == "import":
            return self._resolve_import(file, site, known)
        receiver = receiver_of(file, site)
        if receiver in _OWN:
            return _result(Confidence.SAME_FILE, self._own_member(site, known))
        if receiver is not None:
            return self._resolve_through(file, site, receiver, known)
        imports = _imports_of(file, self._name, site)
        if not imports:
            return self._not_local(file, site, self._resolve_bare(site, known))
        if any(is_module_import(file.source, one) for one in imports):
            return Confidence.BY_NAME, None
        meant = self._imported(file, imports, known)
        return self._not_local(file, site, _result(Confidence.IMPORTED, meant))

    def _resolve_import(
        self, file: FreshFile, site: Site, known: list[Symbol]
    ) -> tuple[Confidence, Symbol | None]:
        """A name in an import statement. A module, or a part of its name, is no definition."""
        is_module = import_role(file.source, site) is ImportRole.MODULE
        if is_module or is_module_import(file.source, site):
            return Confidence.BY_NAME, None
        return _result(Confidence.IMPORTED, self._imported(file, [site], known))

    def _not_local(
        self, file: FreshFile, site: Site, resolved: tuple[Confidence, Symbol | None]
    ) -> tuple[Confidence, Symbol | None]:
        """As resolved, unless a function around the use has a variable or parameter of this name."""
        meant = resolved[1]
        if meant is None or site.kind in ("type", "inherit"):
            return resolved
        outside = meant.container if meant.path == site.path else ""
        is_local = is_bound_in_function(file, site, self._name, outside=outside)
        return (Confidence.BY_NAME, None) if is_local else resolved

    def _resolve_bare(self, site: Site, known: list[Symbol]) -> tuple[Confidence, Symbol | None]:
        local = [one for one in known if one.path == site.path]
        visible = [one for one in local if one not in self._members and _encloses(one, site)]
        if meant := _innermost(visible):
            return Confidence.SAME_FILE, meant
        if site.language in _IMPLICIT_OWN and (meant := self._own_member(site, known)):
            return Confidence.SAME_FILE, meant
        bodies = [one for one in known if one not in self._declarations] or known
        is_visible = family_of(site.language) not in _NEED_IMPORT
        if is_visible and len(bodies) == 1 and bodies[0] not in self._members:
            return Confidence.ONLY_DEFINITION, bodies[0]
        return Confidence.BY_NAME, None

    def _own_member(self, site: Site, known: list[Symbol]) -> Symbol | None:
        """The member of the class that the use stands in."""
        return _innermost(
            [
                one
                for one in known
                if one.path == site.path and one in self._members and _encloses(one, site)
            ]
        )

    def _imported(self, file: FreshFile, imports: list[Site], known: list[Symbol]) -> Symbol | None:
        """The definition whose file the import names better than that of any other."""
        statements = " ".join(statement_at(file.source, one) for one in imports)
        scored = sorted(
            (
                (import_score(statements, one.path, from_path=file.path, name=self._name), one)
                for one in known
                if one not in self._members and one.path != file.path
            ),
            key=lambda pair: -pair[0],
        )
        if not scored or scored[0][0] == 0:
            return None
        if len(scored) > 1 and scored[1][0] == scored[0][0]:
            return None
        is_module = file.language == "python" and may_be_module(
            self._root, statements, from_path=file.path, name=self._name
        )
        return None if is_module else scored[0][1]

    def _resolve_through(
        self, file: FreshFile, site: Site, receiver: str, known: list[Symbol]
    ) -> tuple[Confidence, Symbol | None]:
        """A use behind the name of a module or a class, unless a function around it has a variable of that name."""
        resolved = self._resolve_receiver(file, site, receiver, known) if receiver else None
        if not resolved or not resolved[1] or is_bound_in_function(file, site, receiver):
            return Confidence.BY_NAME, None
        return resolved

    def _resolve_receiver(
        self, file: FreshFile, site: Site, receiver: str, known: list[Symbol]
    ) -> tuple[Confidence, Symbol | None]:
        in_class = [one for one in known if one.container.rpartition("/")[2] == receiver]
        local = [one for one in in_class if one.path == file.path]
        if len(local) == 1:
            return Confidence.SAME_FILE, local[0]
        imports = _imports_of(file, receiver, site)
        if not imports or local:
            return Confidence.BY_NAME, None
        in_module = [
            one
            for one in known
            if not one.container and receiver in _module_names(one.path, file.language)
        ]
        meant = self._named_by(file, imports, in_class, in_module)
        return _result(Confidence.IMPORTED, meant)

    def _named_by(
        self,
        file: FreshFile,
        imports: list[Site],
        in_class: list[Symbol],
        in_module: list[Symbol],
    ) -> Symbol | None:
        statements = " ".join(statement_at(file.source, one) for one in imports)
        name = imports[0].name

        def is_from(path: str) -> bool:
            return import_score(statements, path, from_path=file.path, name=name) > 0

        def is_module(path: str) -> bool:
            if file.language != "python":
                return is_from(path)
            return names_module(statements, path, from_path=file.path, name=name)

        named = [one for one in in_class if is_from(one.path)]
        named += [one for one in in_module if is_module(one.path)]
        return named[0] if len(named) == 1 else None


def _imports_of(file: FreshFile, name: str, site: Site) -> list[Site]:
    """The imports that give the file this name where the use stands."""
    return [
        one
        for one in file.sites(name)
        if one.kind == "import"
        and (not one.container or f"{site.container}/".startswith(f"{one.container}/"))
        and import_role(file.source, one) is ImportRole.BOUND
    ]


def receiver_of(file: FreshFile, site: Site) -> str | None:
    """What stands before the dot: a word, or "" for anything longer; None if there is no dot."""
    before = file.source.line(site.line)[: site.column]
    found = (_LUA_RECEIVER if site.language == "lua" else _RECEIVER).search(before)
    if found is None or site.kind == "import":
        return None
    is_chain = before[: found.start()].rstrip().endswith((".", "->", "::"))
    return "" if is_chain else found[1]


def _module_names(path: str, language: str) -> set[str]:
    segments = module_segments(path)
    names = {segments[-1]} if segments else set()
    return names | ({segments[-2]} if language == "go" and len(segments) > 1 else set())


def _is_in_class(file: FreshFile | None, symbol: Symbol) -> bool:
    """Whether what directly contains the symbol is a class."""
    if file is None or not symbol.container:
        return False
    return any(
        outer.kind in _SCOPES
        for outer in file.symbols
        if outer.name_path == symbol.container and outer.line <= symbol.line <= outer.end_line
    )


def _is_declaration(file: FreshFile | None, symbol: Symbol) -> bool:
    """Whether it only announces a function of C that is defined elsewhere."""
    if file is None or family_of(symbol.language) != "c" or symbol.kind != "function":
        return False
    return file.source.line(symbol.end_line).rstrip().endswith(");")


def _encloses(definition: Symbol, site: Site) -> bool:
    """Whether the use stands inside what contains the definition."""
    scope = definition.container
    return not scope or site.container == scope or site.container.startswith(f"{scope}/")


def _innermost(candidates: list[Symbol]) -> Symbol | None:
    """The one of the innermost scope; None if that has several."""
    if not candidates:
        return None
    deepest = max(one.container.count("/") + bool(one.container) for one in candidates)
    inner = [one for one in candidates if one.container.count("/") + bool(one.container) == deepest]
    return inner[0] if len(inner) == 1 else None


def _result(confidence: Confidence, meant: Symbol | None) -> tuple[Confidence, Symbol | None]:
    return (confidence, meant) if meant else (Confidence.BY_NAME, None)
