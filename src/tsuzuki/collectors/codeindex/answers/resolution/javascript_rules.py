"""How JavaScript and TypeScript bind names."""

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
    {
        "function_declaration",
        "generator_function_declaration",
        "function_expression",
        "generator_function",
        "arrow_function",
        "method_definition",
        "function_signature",
        "method_signature",
        "abstract_method_signature",
        "function_type",
        "constructor_type",
        "call_signature",
        "construct_signature",
    }
)
_BLOCKS = frozenset(
    {
        "program",
        "statement_block",
        "for_statement",
        "for_in_statement",
        "switch_body",
        "catch_clause",
        "class_static_block",
    }
)
_TYPES = frozenset(
    {
        "class_declaration",
        "abstract_class_declaration",
        "class",
        "interface_declaration",
        "type_alias_declaration",
        "conditional_type",
        "mapped_type_clause",
        "index_signature",
    }
)
_SCOPES = _FUNCTIONS | _BLOCKS | _TYPES
_NAMED = frozenset(
    {
        "function_declaration",
        "generator_function_declaration",
        "function_signature",
        "class_declaration",
        "abstract_class_declaration",
        "interface_declaration",
        "type_alias_declaration",
        "enum_declaration",
        "internal_module",
        "module",
    }
)
_PATTERNS = frozenset({"object_pattern", "array_pattern", "rest_pattern", "pair_pattern"})
_DEFAULTS = frozenset({"assignment_pattern", "object_assignment_pattern"})
_PARAMETER = frozenset({"required_parameter", "optional_parameter"})
_MEMBERS = {
    "member_expression": ("property", "object"),
    "nested_type_identifier": ("name", "module"),
    "nested_identifier": ("property", "object"),
}
_KEYS = frozenset(
    {
        "pair",
        "method_definition",
        "property_signature",
        "method_signature",
        "abstract_method_signature",
        "public_field_definition",
        "field_definition",
        "enum_body",
        "enum_assignment",
        "jsx_attribute",
        "labeled_statement",
        "break_statement",
        "continue_statement",
        "namespace_export",
    }
)
_IMPORTS = frozenset(
    {"import_specifier", "import_clause", "namespace_import", "import_require_clause"}
)


class JavascriptRules:
    own_names = frozenset({"this"})
    class_types = frozenset(
        {"class_declaration", "abstract_class_declaration", "class", "interface_declaration"}
    )

    def role(self, syntax: Syntax, path: Path) -> BindingRole:  # noqa: PLR0911 -- one return for each kind of node
        leaf, parent = path[-1], path[-2].node
        kind = parent.type
        if kind in _MEMBERS and leaf.field == _MEMBERS[kind][0]:
            return BindingRole(RoleKind.MEMBER, receiver=named(parent, _MEMBERS[kind][1]))
        if kind in _IMPORTS or kind == "export_specifier":
            return self._import(syntax, path)
        if kind in _NAMED and leaf.field == "name":
            return self._binding(path)
        if kind in ("function_expression", "generator_function", "class") and leaf.field == "name":
            return BindingRole(RoleKind.BINDING, scope=parent.id)
        if kind == "type_parameter" and leaf.field == "name":
            return BindingRole(RoleKind.BINDING, scope=path[-4].node.id)
        if kind in ("mapped_type_clause", "index_signature") and leaf.field == "name":
            return BindingRole(RoleKind.BINDING, scope=parent.id)
        if kind == "infer_type":
            scope = nearest(path, frozenset({"conditional_type"}))
            return BindingRole(RoleKind.BINDING, scope=scope.id if scope else 0)
        if kind in _KEYS and leaf.field != "value":
            is_key = leaf.node.type != "identifier" or kind != "pair"
            return OTHER if is_key else USE
        if kind == "pair_pattern" and leaf.field == "key":
            return OTHER
        return self._target(syntax, path)

    def _binding(self, path: Path) -> BindingRole:
        return BindingRole(RoleKind.BINDING, scope=self.scopes(path)[0])

    def _target(self, syntax: Syntax, path: Path) -> BindingRole:  # noqa: PLR0911 -- one return for each kind of node
        at = len(path) - 2
        while at > 0 and path[at].node.type in _PATTERNS | _DEFAULTS:
            if path[at].node.type in _DEFAULTS and path[at + 1].field == "right":
                return USE
            at -= 1
        outer, field = path[at].node, path[at + 1].field
        if outer.type == "variable_declarator" and field == "name":
            return self._declared_variable(syntax, path, at)
        if outer.type in _PARAMETER and field == "pattern":
            return BindingRole(RoleKind.BINDING, scope=path[at - 2].node.id)
        if outer.type == "formal_parameters":
            return BindingRole(RoleKind.BINDING, scope=path[at - 1].node.id)
        if outer.type in ("arrow_function", "catch_clause") and field == "parameter":
            return BindingRole(RoleKind.BINDING, scope=outer.id)
        if outer.type == "for_in_statement" and field == "left" and named(outer, "kind"):
            return BindingRole(RoleKind.BINDING, scope=outer.id)
        return USE

    def _declared_variable(self, syntax: Syntax, path: Path, at: int) -> BindingRole:
        scope = self.scopes(path)[0]
        if path[at - 1].node.type == "variable_declaration":
            inner = nearest(path[:at], _FUNCTIONS | {"program"})
            scope = inner.id if inner else scope
        module = _required(syntax, named(path[at].node, "value"))
        if module is None:
            return BindingRole(RoleKind.BINDING, scope=scope)
        if at == len(path) - 2:
            return BindingRole(RoleKind.IMPORT, scope=scope, module=module)
        pair = path[-2].node
        original = named(pair, "key") if pair.type == "pair_pattern" else path[-1].node
        name = syntax.written(original) if original else ""
        return BindingRole(RoleKind.IMPORT, scope=scope, module=module, original=name)

    def _import(self, syntax: Syntax, path: Path) -> BindingRole:
        at = climb(path, _IMPORTS | {"named_imports", "export_clause", "export_specifier"})
        parent, statement = path[-2].node, path[at].node
        source = named(statement, "source") or named(parent, "source")
        if parent.type == "export_specifier":
            if path[-1].field == "alias":
                return OTHER
            if source is None:
                return USE
        module = syntax.written(source).strip("'\"`") if source else ""
        scope = self.scopes(path)[0]
        if parent.type in ("namespace_import", "import_require_clause"):
            return BindingRole(RoleKind.IMPORT, scope=scope, module=module)
        if parent.type == "import_clause":
            return BindingRole(RoleKind.IMPORT, scope=scope, module=module, original="default")
        original = named(parent, "name")
        name = syntax.written(original) if original else ""
        is_bound = parent.type == "import_specifier" and (
            path[-1].field == "alias" or named(parent, "alias") is None
        )
        kind = RoleKind.IMPORT if is_bound else RoleKind.IMPORTED
        return BindingRole(kind, scope=scope, module=module, original=name)

    def scopes(self, path: Path) -> list[int]:
        return [
            path[index].node.id
            for index in range(len(path) - 2, -1, -1)
            if path[index].node.type in _SCOPES
            and (path[index + 1].field != "name" or path[index].node.type == "mapped_type_clause")
        ] or [path[0].node.id]

    def declared(self, path: Path) -> tree_sitter.Node | None:
        parent = path[-2].node
        if path[-1].field not in ("name", "pattern"):
            return None
        return named(parent, "type") or named(parent, "value")

    def result(self, path: Path) -> tree_sitter.Node | None:
        node = path[-2].node
        if node.type == "variable_declarator":
            function = named(node, "value")
            return named(function, "return_type") if function else None
        return named(node, "return_type")

    def bases(self, node: tree_sitter.Node) -> Sequence[tree_sitter.Node]:
        heritage = [
            one
            for one in node.named_children
            if one.type in ("class_heritage", "extends_type_clause", "extends_clause")
        ]
        clauses = [
            inner
            for one in heritage
            for inner in (one.named_children if one.type == "class_heritage" else [one])
        ]
        return [
            child
            for clause in clauses
            if clause.type != "implements_clause"
            for child in ([clause] if clause.type.endswith("identifier") else clause.named_children)
        ]

    def wildcards(self, syntax: Syntax) -> list[str]:
        return [
            syntax.written(source).strip("'\"")
            for statement in syntax.root.named_children
            if statement.type == "export_statement"
            and (source := named(statement, "source"))
            and statement.named_child_count == 1
        ]


def _required(syntax: Syntax, value: tree_sitter.Node | None) -> str | None:
    """The module of `require("module")`."""
    if value is None or value.type != "call_expression":
        return None
    function, arguments = named(value, "function"), named(value, "arguments")
    if function is None or arguments is None or syntax.written(function) != "require":
        return None
    first = child(arguments, 0)
    is_text = first is not None and first.type == "string"
    return syntax.written(first).strip("'\"") if first and is_text else None
