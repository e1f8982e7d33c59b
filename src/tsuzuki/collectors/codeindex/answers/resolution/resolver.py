"""Which definition a name means where it stands, for languages whose scopes and imports are known.

Only what the text shows counts: the innermost scope that binds a name, the module that an import names, the class that
is written for a variable or constructed for it. What cannot be followed has no meaning here; it is never guessed.
"""

import posixpath
from collections import OrderedDict

import tree_sitter

from tsuzuki.collectors.codeindex.answers.definitions import definitions_of
from tsuzuki.collectors.codeindex.answers.freshness import FreshFile
from tsuzuki.collectors.codeindex.answers.resolution import exports
from tsuzuki.collectors.codeindex.answers.resolution.evaluation import evaluated
from tsuzuki.collectors.codeindex.answers.resolution.modules import Modules
from tsuzuki.collectors.codeindex.answers.resolution.roles import (
    BindingRole,
    Path,
    RoleKind,
    nearest,
)
from tsuzuki.collectors.codeindex.answers.resolution.scoped_file import RULES, Bound, ScopedFile
from tsuzuki.collectors.codeindex.answers.resolution.values import (
    Instance,
    Local,
    Module,
    NamedDefinition,
    Value,
)
from tsuzuki.collectors.codeindex.answers.symbol import CONTAINER_KINDS, Site, family_of
from tsuzuki.collectors.codeindex.answers.syntax_trees import TREES_MAX, SyntaxTrees
from tsuzuki.collectors.codeindex.queries.lookups import Symbol

DEPTH_MAX = 24
"""Of imports, base classes and types that lead to each other."""

STEPS_MAX = 200
"""Expressions that are looked at for one use: what leads further is left open."""

_TYPES = CONTAINER_KINDS | {"type"}


class ScopeResolver:
    """Follows names through the files of one tree, for one answer."""

    def __init__(self, trees: SyntaxTrees, *, changed: frozenset[str]) -> None:
        self._trees = trees
        self._changed = changed
        self._definitions: dict[str, list[Symbol]] = {}
        self._files: OrderedDict[str, ScopedFile | None] = OrderedDict()
        self._exports: dict[tuple[str, str], Value | None] = {}
        self._bases: dict[Symbol, tuple[Symbol, ...]] = {}
        self._depth = 0
        self._steps = 0
        self.modules = Modules(trees.files, changed)

    def meaning(self, file: FreshFile, site: Site) -> tuple[Symbol, ...]:
        """The definition that is meant, with its overloads; empty if that cannot be said."""
        scoped = self.scoped(file.path)
        if scoped is None:
            return ()
        offset = scoped.syntax.offset(site.line, site.column)
        path = scoped.syntax.path_to(offset)
        if path[-1].node.start_byte != offset or scoped.syntax.written(path[-1].node) != site.name:
            return ()
        self._steps = 0
        value = self._value(scoped, site.name, path)
        return (
            value.symbols if isinstance(value, NamedDefinition) and self._steps <= STEPS_MAX else ()
        )

    def definitions(self, name: str) -> list[Symbol]:
        """Every definition of a name in the tree."""
        if name not in self._definitions:
            self._definitions[name] = definitions_of(
                self._trees.files, [name], changed=self._changed
            )
        return self._definitions[name]

    def scoped(self, path: str) -> ScopedFile | None:
        """The file at a path, if its language is one of those that are followed."""
        if path in self._files:
            self._files.move_to_end(path)
            return self._files[path]
        file = self._trees.files.get(path)
        family = family_of(file.language) if file else ""
        syntax = self._trees.of(file) if file and family in RULES else None
        self._files[path] = ScopedFile(file, syntax, family) if file and syntax else None
        if len(self._files) > TREES_MAX:
            self._files.popitem(last=False)
        return self._files[path]

    def _value(self, scoped: ScopedFile, name: str, path: Path) -> Value | None:
        role = scoped.role(path)
        match role.kind:
            case RoleKind.USE:
                return self.bare(scoped, name, path)
            case RoleKind.BINDING:
                bound = [one for one in scoped.bound(name) if one.role.scope == role.scope]
                return self.of_bound(scoped, name, bound or scoped.lookup(name, path))
            case RoleKind.IMPORT | RoleKind.IMPORTED:
                return self._imported(scoped, role)
            case RoleKind.MEMBER | RoleKind.KEY:
                return self._behind_dot(scoped, name, path, role)
            case RoleKind.OTHER:
                return None

    def _behind_dot(
        self, scoped: ScopedFile, name: str, path: Path, role: BindingRole
    ) -> Value | None:
        """A member; or the key of a literal, which is a field of its type, else an expression."""
        receiver = self.evaluate(scoped, role.receiver) if role.receiver else None
        found = self.member(receiver, name, scoped.family)
        if found is None and role.kind is RoleKind.KEY and receiver is None:
            return self.bare(scoped, name, path)
        return found

    def evaluate(self, scoped: ScopedFile, node: tree_sitter.Node) -> Value | None:
        """What an expression or a type is."""
        self._steps += 1
        if self._depth > DEPTH_MAX or self._steps > STEPS_MAX:
            return None
        self._depth += 1
        try:
            return evaluated(self, scoped, node)
        finally:
            self._depth -= 1

    def bare(self, scoped: ScopedFile, name: str, path: Path) -> Value | None:
        """A name without a dot before it."""
        if name in scoped.rules.own_names and (around := self.class_around(scoped, path)):
            return Instance(around)
        if bound := scoped.lookup(name, path):
            return self.of_bound(scoped, name, bound)
        return exports.from_outside(self, scoped, name)

    def of_bound(self, scoped: ScopedFile, name: str, bound: list[Bound]) -> Value | None:
        """What places of one scope bind a name to. An import beside a definition leaves it open which is meant."""
        imports = [one.role for one in bound if one.role.kind is RoleKind.IMPORT]
        if imports:
            values = {self._imported(scoped, role) for role in imports}
            return values.pop() if len(values) == 1 and len(imports) == len(bound) else None
        if symbols := scoped.symbols_at(name, bound):
            return NamedDefinition(symbols)
        return Local(scoped, tuple(bound)) if bound else None

    def _imported(self, scoped: ScopedFile, role: BindingRole) -> Value | None:
        module = self.modules.find(scoped.family, role.module, scoped.path)
        if module is None:
            return None
        if role.original is None:
            return Module(module)
        return self.export(module, role.original, scoped.family)

    def export(self, module: str, name: str, family: str) -> Value | None:
        """What a module gives others under a name, through the modules it has it from."""
        key = (module, name)
        if key not in self._exports:
            self._exports[key] = None  # while it is followed: a circle leads nowhere
            self._exports[key] = exports.export(self, module, name, family)
            if self._steps > STEPS_MAX:
                return self._exports.pop(key)  # another use may come further
        return self._exports[key]

    def member(self, value: Value | None, name: str, family: str) -> Value | None:
        """What stands behind the dot of a value."""
        if isinstance(value, Module):
            return self.export(value.path, name, family)
        return self._class_member(self.classes(value), name) if value else None

    def classes(self, value: Value | None) -> tuple[Symbol, ...]:
        """The class of an object, or the class itself."""
        match value:
            case Instance(symbols):
                return symbols
            case NamedDefinition(symbols):
                if symbols[0].kind in _TYPES:
                    return symbols
                scoped = self.scoped(symbols[0].path)
                return self._declared(scoped, self._path_of(symbols[0])) if scoped else ()
            case Local(file, bound):
                found = {self._declared(file, one.occurrence.path) for one in bound}
                return found.pop() if len(found) == 1 else ()
        return ()

    def _declared(self, scoped: ScopedFile, path: Path) -> tuple[Symbol, ...]:
        node = scoped.rules.declared(path) if len(path) > 3 else None
        return self.classes(self.evaluate(scoped, node)) if node else ()

    def result(self, function: Symbol) -> tuple[Symbol, ...]:
        """The class of what a function returns."""
        scoped = self.scoped(function.path)
        node = scoped.rules.result(self._path_of(function)) if scoped else None
        return self.classes(self.evaluate(scoped, node)) if scoped and node else ()

    def _path_of(self, symbol: Symbol) -> Path:
        scoped = self.scoped(symbol.path)
        if scoped is None:
            return ()
        return scoped.syntax.path_to(scoped.syntax.offset(symbol.line, symbol.column))

    def _class_member(self, classes: tuple[Symbol, ...], name: str) -> Value | None:
        for owner in classes:
            found = tuple(one for one in self.definitions(name) if _is_member(one, owner))
            if found:
                return NamedDefinition(found)
        self._steps += 1
        if self._depth > DEPTH_MAX or self._steps > STEPS_MAX:
            return None
        self._depth += 1
        try:
            bases = (self.bases(owner) for owner in classes)
            found_in = (self._class_member(one, name) for one in bases if one)
            return next((one for one in found_in if one), None)
        finally:
            self._depth -= 1

    def bases(self, owner: Symbol) -> tuple[Symbol, ...]:
        """The classes of the tree that a class inherits from."""
        if owner not in self._bases:
            self._bases[owner] = ()  # while they are followed: a circle leads nowhere
            self._bases[owner] = self._find_bases(owner)
            if self._steps > STEPS_MAX:
                return self._bases.pop(owner)  # another use may come further
        return self._bases[owner]

    def _find_bases(self, owner: Symbol) -> tuple[Symbol, ...]:
        scoped = self.scoped(owner.path)
        node = nearest(self._path_of(owner), scoped.rules.class_types) if scoped else None
        if scoped is None or node is None:
            return ()
        found = [self.classes(self.evaluate(scoped, one)) for one in scoped.rules.bases(node)]
        return tuple(symbol for symbols in found for symbol in symbols if symbol != owner)

    def class_around(self, scoped: ScopedFile, path: Path) -> tuple[Symbol, ...]:
        """The class in whose method a place is."""
        node = nearest(path, scoped.rules.class_types)
        name = node.child_by_field_name("name") if node else None
        if name is None:
            return ()
        line, column = scoped.syntax.positions.place(name.start_byte)
        return tuple(one for one in scoped.file.symbols if (one.line, one.column) == (line, column))


def _is_member(symbol: Symbol, owner: Symbol) -> bool:
    if symbol.container != owner.name_path:
        return False
    if symbol.language == "go":
        return posixpath.dirname(symbol.path) == posixpath.dirname(owner.path)
    return symbol.path == owner.path
