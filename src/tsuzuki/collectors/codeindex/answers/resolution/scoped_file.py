"""The names of one file, by the scopes that bind them."""

from dataclasses import dataclass, field
from typing import NamedTuple

from tsuzuki.collectors.codeindex.answers.freshness import FreshFile
from tsuzuki.collectors.codeindex.answers.resolution.go_rules import GoRules
from tsuzuki.collectors.codeindex.answers.resolution.javascript_rules import JavascriptRules
from tsuzuki.collectors.codeindex.answers.resolution.python_rules import PythonRules
from tsuzuki.collectors.codeindex.answers.resolution.roles import (
    BindingRole,
    BindingRules,
    Path,
    RoleKind,
)
from tsuzuki.collectors.codeindex.extract import Occurrence, Syntax
from tsuzuki.collectors.codeindex.queries.lookups import Symbol

RULES: dict[str, BindingRules] = {
    "python": PythonRules(),
    "javascript": JavascriptRules(),
    "go": GoRules(),
}
"""By family of languages. The others are resolved by their text."""

_BINDS = (RoleKind.BINDING, RoleKind.IMPORT)


class Bound(NamedTuple):
    """A place that binds a name."""

    occurrence: Occurrence
    role: BindingRole


@dataclass
class ScopedFile:
    """A file with its tree and the rules of its language."""

    file: FreshFile
    syntax: Syntax
    family: str
    _bound: dict[str, list[Bound]] = field(default_factory=dict)

    @property
    def path(self) -> str:
        return self.file.path

    @property
    def rules(self) -> BindingRules:
        return RULES[self.family]

    def role(self, path: Path) -> BindingRole:
        return self.rules.role(self.syntax, path)

    def bound(self, name: str) -> list[Bound]:
        """Every place that binds a name."""
        if name not in self._bound:
            roles = [(one, self.role(one.path)) for one in self.syntax.occurrences(name)]
            outer = self._declared_outer(name)
            self._bound[name] = [
                Bound(one, role)
                for one, role in roles
                if role.kind in _BINDS and role.scope not in outer
            ]
        return self._bound[name]

    def _declared_outer(self, name: str) -> set[int]:
        """The functions that say `global name` or `nonlocal name`."""
        if self.family != "python":
            return set()
        return {
            self.rules.scopes(one.path)[0]
            for one in self.syntax.occurrences(name)
            if one.path[-2].node.type in ("global_statement", "nonlocal_statement")
        }

    def lookup(self, name: str, path: Path) -> list[Bound]:
        """What binds the name in the innermost scope around a place that has it."""
        bound = self.bound(name)
        if not bound:
            return []
        for scope in self.rules.scopes(path):
            if found := [one for one in bound if one.role.scope == scope]:
                return found
        return []

    def at_top(self, name: str) -> list[Bound]:
        """What binds the name for the whole file."""
        return [one for one in self.bound(name) if one.role.scope == self.syntax.root.id]

    def symbols_at(self, name: str, bound: list[Bound]) -> tuple[Symbol, ...]:
        """The definitions that the index has for these places."""
        places = {self.syntax.positions.place(one.occurrence.start) for one in bound}
        return tuple(
            one
            for one in self.file.symbols
            if one.name == name and (one.line, one.column) in places
        )
