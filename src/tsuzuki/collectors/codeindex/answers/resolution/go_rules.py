"""How Go binds names."""

from collections.abc import Sequence

import tree_sitter

from tsuzuki.collectors.codeindex.answers.resolution.roles import (
    OTHER,
    USE,
    BindingRole,
    Path,
    RoleKind,
    child,
    climb,
    named,
    nearest,
)
from tsuzuki.collectors.codeindex.extract import Syntax

_FUNCTIONS = frozenset(
    {"function_declaration", "method_declaration", "func_literal", "function_type", "method_elem"}
)
_SCOPES = _FUNCTIONS | {
    "source_file",
    "block",
    "if_statement",
    "for_statement",
    "expression_switch_statement",
    "type_switch_statement",
    "expression_case",
    "type_case",
    "default_case",
    "communication_case",
    "type_spec",
}
_NAMED = frozenset({"function_declaration", "type_spec", "type_alias", "const_spec", "var_spec"})
_PARAMETER = frozenset({"parameter_declaration", "variadic_parameter_declaration"})
_ASSIGNS = frozenset({"short_var_declaration", "range_clause", "receive_statement"})
_LIST = frozenset({"expression_list"})


class GoRules:
    own_names: frozenset[str] = frozenset()
    class_types = frozenset({"type_spec", "type_alias"})

    def role(self, syntax: Syntax, path: Path) -> BindingRole:  # noqa: PLR0911 -- one return for each kind of node
        leaf, parent = path[-1], path[-2].node
        kind = parent.type
        if kind == "selector_expression" and leaf.field == "field":
            return BindingRole(RoleKind.MEMBER, receiver=named(parent, "operand"))
        if kind == "qualified_type" and leaf.field == "name":
            return BindingRole(RoleKind.MEMBER, receiver=named(parent, "package"))
        if kind in _NAMED and leaf.field == "name":
            return self._binding(path)
        if kind in _PARAMETER and leaf.field == "name":
            owner = nearest(path, _FUNCTIONS)
            return BindingRole(RoleKind.BINDING, scope=owner.id if owner else 0)
        if kind == "type_parameter_declaration" and leaf.field == "name":
            owner = nearest(path, _FUNCTIONS | {"type_spec"})
            return BindingRole(RoleKind.BINDING, scope=owner.id if owner else 0)
        if kind == "import_spec":
            source = named(parent, "path")
            module = syntax.written(source).strip('"`') if source else ""
            return BindingRole(RoleKind.IMPORT, scope=path[0].node.id, module=module)
        if kind in ("field_declaration", "method_declaration", "method_elem", "package_clause"):
            return OTHER if leaf.field == "name" or kind == "package_clause" else USE
        if kind == "literal_element" and path[-2].field == "key":
            return self._key(path)
        return self._target(path)

    def _binding(self, path: Path) -> BindingRole:
        return BindingRole(RoleKind.BINDING, scope=self.scopes(path)[0])

    def _key(self, path: Path) -> BindingRole:
        literal = nearest(path, frozenset({"composite_literal"}))
        kind = named(literal, "type") if literal else None
        if kind is not None and path[-4].node.start_byte != named_start(literal, "body"):
            kind = named(kind, "element") or named(kind, "value")
        return BindingRole(RoleKind.KEY, receiver=kind)

    def _target(self, path: Path) -> BindingRole:
        at = climb(path, _LIST)
        outer, field = path[at].node, path[at + 1].field
        is_bound = (outer.type in _ASSIGNS and field == "left") or (
            outer.type == "type_switch_statement" and field == "alias"
        )
        return self._binding(path) if is_bound else USE

    def scopes(self, path: Path) -> list[int]:
        return [
            path[index].node.id
            for index in range(len(path) - 2, -1, -1)
            if path[index].node.type in _SCOPES and path[index + 1].field != "name"
        ] or [path[0].node.id]

    def declared(self, path: Path) -> tree_sitter.Node | None:
        parent = path[-2].node
        if parent.type in (*_PARAMETER, "var_spec", "field_declaration", "const_spec"):
            return named(parent, "type") or _value(parent, path[-1].node, "name", "value")
        if parent.type == "expression_list" and path[-3].node.type == "short_var_declaration":
            return _value(path[-3].node, path[-1].node, "left", "right")
        return None

    def result(self, path: Path) -> tree_sitter.Node | None:
        result = named(path[-2].node, "result")
        if result is None or result.type != "parameter_list":
            return result
        first = child(result, 0)
        return named(first, "type") if first else None

    def bases(self, node: tree_sitter.Node) -> Sequence[tree_sitter.Node]:
        """Embedded types."""
        kind = named(node, "type")
        fields = child(kind, 0) if kind and kind.type == "struct_type" else None
        return [
            embedded
            for one in (fields.named_children if fields else [])
            if one.type == "field_declaration" and named(one, "name") is None
            if (embedded := named(one, "type"))
        ]

    def wildcards(self, syntax: Syntax) -> list[str]:  # noqa: ARG002 -- the same for every language
        return []


def named_start(node: tree_sitter.Node | None, field: str) -> int:
    found = named(node, field) if node else None
    return found.start_byte if found else -1


def _value(
    outer: tree_sitter.Node, leaf: tree_sitter.Node, left: str, right: str
) -> tree_sitter.Node | None:
    """What a name on the left is given. Of a call with several results only the first is known."""
    names = outer.children_by_field_name(left)
    if names and names[0].type == "expression_list":
        names = names[0].named_children
    values = named(outer, right)
    given = values.named_children if values and values.type == "expression_list" else [values]
    place = next((at for at, one in enumerate(names) if one == leaf), len(given))
    return given[place] if place < len(given) else None
