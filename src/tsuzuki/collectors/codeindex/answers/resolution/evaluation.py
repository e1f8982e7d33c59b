"""What an expression or a written type is, by the kind of its node."""

from typing import TYPE_CHECKING

import tree_sitter

from tsuzuki.collectors.codeindex.answers.resolution.roles import child, named
from tsuzuki.collectors.codeindex.answers.resolution.scoped_file import ScopedFile
from tsuzuki.collectors.codeindex.answers.resolution.values import Instance, NamedDefinition, Value
from tsuzuki.collectors.codeindex.answers.symbol import CONTAINER_KINDS

if TYPE_CHECKING:
    from tsuzuki.collectors.codeindex.answers.resolution.resolver import ScopeResolver

_NAMES = frozenset({"identifier", "type_identifier", "package_identifier", "this"})
_MEMBERS = {
    "attribute": ("object", "attribute"),
    "member_expression": ("object", "property"),
    "selector_expression": ("operand", "field"),
    "qualified_type": ("package", "name"),
    "nested_type_identifier": ("module", "name"),
    "nested_identifier": ("object", "property"),
}
_CALLS = {"call": "function", "call_expression": "function", "new_expression": "constructor"}
_WRAPPERS = frozenset(
    {
        "parenthesized_expression",
        "parenthesized_type",
        "await",
        "await_expression",
        "non_null_expression",
        "type",
        "type_annotation",
        "pointer_type",
        "unary_expression",
        "readonly_type",
    }
)
_TRANSPARENT = frozenset({"Optional", "Annotated", "ClassVar", "Final", "Readonly", "Promise"})
"""Generic types whose members are those of their first argument."""

_FUNCTIONS = frozenset({"function", "method"})
_TYPES = CONTAINER_KINDS | {"type"}


def evaluated(  # noqa: PLR0911 -- one return for each kind of node
    resolver: "ScopeResolver", scoped: ScopedFile, node: tree_sitter.Node
) -> Value | None:
    kind = node.type
    if kind in _NAMES:
        return resolver.bare(
            scoped, scoped.syntax.written(node), scoped.syntax.path_to(node.start_byte)
        )
    if kind in _MEMBERS:
        return _member(resolver, scoped, node)
    if kind in _CALLS:
        return _called(resolver, scoped, node)
    if kind in _WRAPPERS:
        inner = _inner(node)
        return resolver.evaluate(scoped, inner) if inner else None
    if kind == "generic_type":
        return _generic(resolver, scoped, node)
    if kind in ("composite_literal", "type_assertion_expression", "as_expression"):
        written = named(node, "type") or child(node, 1)
        classes = resolver.classes(resolver.evaluate(scoped, written)) if written else ()
        return Instance(classes) if classes else None
    if kind in ("union_type", "binary_operator"):
        found = (resolver.evaluate(scoped, one) for one in node.named_children)
        return next((one for one in found if one), None)
    return None


def _inner(node: tree_sitter.Node) -> tree_sitter.Node | None:
    if node.type == "unary_expression":
        return named(node, "operand")
    return child(node, 0)


def _member(resolver: "ScopeResolver", scoped: ScopedFile, node: tree_sitter.Node) -> Value | None:
    before, behind = _MEMBERS[node.type]
    receiver, name = named(node, before), named(node, behind)
    if receiver is None or name is None:
        return None
    value = resolver.evaluate(scoped, receiver)
    return resolver.member(value, scoped.syntax.written(name), scoped.family)


def _called(resolver: "ScopeResolver", scoped: ScopedFile, node: tree_sitter.Node) -> Value | None:
    """The object that a call gives: of a class that is constructed, or that is written as the result."""
    callee = named(node, _CALLS[node.type])
    if callee is None:
        return None
    if scoped.family == "python" and scoped.syntax.written(callee) == "super":
        around = resolver.class_around(scoped, scoped.syntax.path_to(node.start_byte))
        bases = tuple(base for one in around for base in resolver.bases(one))
        return Instance(bases) if bases else None
    value = resolver.evaluate(scoped, callee)
    if not isinstance(value, NamedDefinition):
        return None
    first = value.symbols[0]
    if first.kind in _TYPES:
        return Instance(value.symbols)
    classes = resolver.result(first) if first.kind in _FUNCTIONS else ()
    return Instance(classes) if classes else None


def _generic(resolver: "ScopeResolver", scoped: ScopedFile, node: tree_sitter.Node) -> Value | None:
    name = named(node, "name") or named(node, "type") or child(node, 0)
    if name is None:
        return None
    if scoped.syntax.written(name) in _TRANSPARENT:
        arguments = child(node, 1)
        first = child(arguments, 0) if arguments else None
        return resolver.evaluate(scoped, first) if first else None
    return resolver.evaluate(scoped, name)
