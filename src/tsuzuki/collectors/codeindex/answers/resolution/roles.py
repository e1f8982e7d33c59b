"""What an identifier does where it stands, and what a language has to say for that."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Protocol

import tree_sitter

from tsuzuki.collectors.codeindex.extract import Syntax, SyntaxStep

Path = tuple[SyntaxStep, ...]


class RoleKind(Enum):
    USE = "use"
    """Means what the innermost scope around it binds."""

    MEMBER = "member"
    """Stands behind a dot."""

    BINDING = "binding"
    """Gives the name to something in a scope: a definition, a parameter, a variable."""

    IMPORT = "import"
    """Gives a name to something of another module."""

    IMPORTED = "imported"
    """Names something of another module that gets another name here."""

    KEY = "key"
    """A field in the literal of a struct."""

    OTHER = "other"
    """A name that no scope has: a label, a keyword argument, a part of a module's name."""


@dataclass(frozen=True, slots=True)
class BindingRole:
    kind: RoleKind
    scope: int = 0
    """Of a binding: the id of the node in which the name is visible."""

    receiver: tree_sitter.Node | None = None
    """Of a member: what stands before the dot; of a key: the type of the literal."""

    module: str = ""
    """Of an import: the module as it is written."""

    original: str | None = None
    """Of an import: the name in that module; None for the module itself."""


USE = BindingRole(RoleKind.USE)
OTHER = BindingRole(RoleKind.OTHER)


class BindingRules(Protocol):
    """How one family of languages binds names."""

    own_names: frozenset[str]
    """What a method calls the object that it belongs to."""

    class_types: frozenset[str]
    """Nodes that define a class, a struct or the like."""

    def role(self, syntax: Syntax, path: Path) -> BindingRole: ...

    def scopes(self, path: Path) -> list[int]:
        """The ids of the nodes in which a name is looked up, the innermost first."""

    def declared(self, path: Path) -> tree_sitter.Node | None:
        """The type that is written for a binding, or the value that it is given."""

    def result(self, path: Path) -> tree_sitter.Node | None:
        """The type that is written for the result of the function whose name the path leads to."""

    def bases(self, node: tree_sitter.Node) -> Sequence[tree_sitter.Node]:
        """What a class inherits from."""

    def wildcards(self, syntax: Syntax) -> list[str]:
        """The modules of which a file takes over every name."""


def named(node: tree_sitter.Node, field: str) -> tree_sitter.Node | None:
    return node.child_by_field_name(field)


def child(node: tree_sitter.Node, index: int) -> tree_sitter.Node | None:
    return node.named_children[index] if index < node.named_child_count else None


def climb(path: Path, through: frozenset[str], *, start: int = -1) -> int:
    """The index of the first node above the leaf whose type is none of `through`."""
    index = len(path) + start - 1
    while index > 0 and path[index].node.type in through:
        index -= 1
    return index


def nearest(path: Path, types: frozenset[str]) -> tree_sitter.Node | None:
    """The innermost node of one of these types."""
    return next((step.node for step in reversed(path) if step.node.type in types), None)
