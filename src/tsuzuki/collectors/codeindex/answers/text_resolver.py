"""Which definition a use means, read from the text around it: for languages whose scopes are not followed.

A use is only exact if the text shows it: the definition is visible in the same file, the file imports it, or the
language needs no import and the tree has one definition. A use behind a dot is exact if what stands before the dot
is known.
"""

import re
from collections.abc import Iterable

from tsuzuki.collectors.codeindex.answers.confidence import Confidence
from tsuzuki.collectors.codeindex.answers.freshness import FreshFile
from tsuzuki.collectors.codeindex.answers.import_match import (
    import_score,
    is_renamed,
    module_segments,
    statement_at,
)
from tsuzuki.collectors.codeindex.answers.local_names import is_bound_in_function
from tsuzuki.collectors.codeindex.answers.symbol import CONTAINER_KINDS, Site, family_of
from tsuzuki.collectors.codeindex.answers.syntax_trees import SyntaxTrees
from tsuzuki.collectors.codeindex.queries.lookups import Symbol

_RECEIVER = re.compile(r"([\w$@]*)\s*(?:\?\.|\.|->|::)\s*$")
_LUA_RECEIVER = re.compile(r"(\w*)\s*[.:]\s*$")
_OWN = frozenset({"self", "cls", "this", "$this", "Self", "static"})
_IMPLICIT_OWN = frozenset({"java", "csharp", "kotlin", "swift", "scala", "cpp", "ruby"})
"""Languages in which a method calls another of its class without a receiver."""

_SCOPES = CONTAINER_KINDS - {"module", "namespace"}


class TextResolver:
    """Decides which definition of one name a use means."""

    def __init__(self, trees: SyntaxTrees, name: str, definitions: Iterable[Symbol]) -> None:
        files = trees.files
        self._name = name
        self._trees = trees
        self._members: set[Symbol] = set()
        self._declarations: set[Symbol] = set()
        for symbol in definitions:
            if symbol.is_member or _is_in_class(files.get(symbol.path), symbol):
                self._members.add(symbol)
            elif _is_declaration(files.get(symbol.path), symbol):
                self._declarations.add(symbol)

    def resolve(
        self, file: FreshFile, site: Site, known: list[Symbol]
    ) -> tuple[Confidence, Symbol | None]:
        if site.kind == "import":
            return _result(Confidence.IMPORTED, self._imported(file, [site], known))
        receiver = receiver_of(file, site)
        if receiver in _OWN:
            return _result(Confidence.SAME_FILE, self._own_member(site, known))
        if receiver is not None:
            return self._resolve_through(file, site, receiver, known)
        imports = self._imports_of(file, self._name, site)
        if not imports:
            return self._not_local(file, site, self._resolve_bare(site, known))
        meant = self._imported(file, imports, known)
        return self._not_local(file, site, _result(Confidence.IMPORTED, meant))

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
        if not _may_be_local(site) and len(bodies) == 1 and bodies[0] not in self._members:
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
                (import_score(statements, one.path, from_path=file.path), one)
                for one in known
                if one not in self._members and one.path != file.path
            ),
            key=lambda pair: -pair[0],
        )
        if not scored or scored[0][0] == 0:
            return None
        if len(scored) > 1 and scored[1][0] == scored[0][0]:
            return None
        return scored[0][1]

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
        imports = self._imports_of(file, receiver, site)
        if not imports or local:
            return Confidence.BY_NAME, None
        statements = " ".join(statement_at(file.source, one) for one in imports)
        in_module = [
            one for one in known if not one.container and receiver in module_segments(one.path)[-1:]
        ]
        found = [
            one
            for one in [*in_class, *in_module]
            if import_score(statements, one.path, from_path=file.path) > 0
        ]
        return _result(Confidence.IMPORTED, found[0] if len(found) == 1 else None)

    def _imports_of(self, file: FreshFile, name: str, site: Site) -> list[Site]:
        """The imports that give the file this name where the use stands."""
        return [
            one
            for one in self._trees.sites(file, name)
            if one.kind == "import"
            and (not one.container or f"{site.container}/".startswith(f"{one.container}/"))
            and not is_renamed(file.source, one)
        ]


def receiver_of(file: FreshFile, site: Site) -> str | None:
    """What stands before the dot: a word, or "" for anything longer; None if there is no dot."""
    before = file.source.line(site.line)[: site.column]
    found = (_LUA_RECEIVER if site.language == "lua" else _RECEIVER).search(before)
    if found is None or site.kind == "import":
        return None
    is_chain = before[: found.start()].rstrip().endswith((".", "->", "::"))
    return "" if is_chain else found[1]


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


def _may_be_local(site: Site) -> bool:
    """Whether only the name says that it is no local variable, and it does not."""
    return site.kind == "read" and not site.name[:1].isupper()


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
