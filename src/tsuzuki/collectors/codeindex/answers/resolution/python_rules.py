"""How Python binds names."""

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
)
from tsuzuki.collectors.codeindex.extract import Syntax

_FUNCTIONS = frozenset({"function_definition", "lambda"})
_COMPREHENSIONS = frozenset(
    {
        "list_comprehension",
        "set_comprehension",
        "dictionary_comprehension",
        "generator_expression",
    }
)
_PATTERNS = frozenset(
    {
        "pattern_list",
        "tuple_pattern",
        "list_pattern",
        "list_splat_pattern",
        "dictionary_splat_pattern",
        "parenthesized_expression",
        "tuple",
        "list",
        "as_pattern_target",
    }
)
_PARAMETERS = frozenset({"parameters", "lambda_parameters"})
_PARAMETER = frozenset({"default_parameter", "typed_default_parameter", "typed_parameter"})
_SPLATS = frozenset({"list_splat_pattern", "dictionary_splat_pattern", "tuple_pattern"})
_STATEMENTS = frozenset({"import_statement", "import_from_statement", "future_import_statement"})
_OUTER = frozenset({"global_statement", "nonlocal_statement"})


class PythonRules:
    own_names = frozenset({"self", "cls"})
    class_types = frozenset({"class_definition"})

    def role(self, syntax: Syntax, path: Path) -> BindingRole:  # noqa: PLR0911 -- one return for each kind of node
        leaf, parent = path[-1], path[-2].node
        kind = parent.type
        if kind == "attribute" and leaf.field == "attribute":
            return BindingRole(RoleKind.MEMBER, receiver=named(parent, "object"))
        if kind in ("keyword_argument", "function_definition", "class_definition"):
            if leaf.field != "name":
                return USE
            return OTHER if kind == "keyword_argument" else self._binding(path)
        if kind in ("dotted_name", "aliased_import"):
            return self._dotted(syntax, path)
        if kind in _OUTER or kind == "keyword_pattern":
            return OTHER
        if kind in ("named_expression", "type_parameter") and leaf.field != "value":
            return BindingRole(RoleKind.BINDING, scope=self._function_scope(path))
        return self._target(path)

    def _binding(self, path: Path) -> BindingRole:
        return BindingRole(RoleKind.BINDING, scope=self.scopes(path)[0])

    def _target(self, path: Path) -> BindingRole:
        """Whether something is assigned to it."""
        if scope := self._parameter_of(path):
            return BindingRole(RoleKind.BINDING, scope=scope)
        at = climb(path, _PATTERNS)
        outer, field = path[at].node, path[at + 1].field
        if outer.type in ("assignment", "augmented_assignment", "for_statement"):
            return self._binding(path) if field == "left" else USE
        if outer.type == "for_in_clause" and field == "left":
            return BindingRole(RoleKind.BINDING, scope=path[at - 1].node.id)
        if outer.type == "as_pattern" and field == "alias":
            return self._binding(path)
        is_case = outer.type in ("as_pattern", "splat_pattern") and any(
            step.node.type == "case_pattern" for step in path
        )
        return self._binding(path) if is_case else USE

    def _parameter_of(self, path: Path) -> int:
        """The function that has it as a parameter; 0 if it is none."""
        at = climb(path, _SPLATS)
        if path[at].node.type in _PARAMETER:
            if path[at + 1].field in ("type", "value"):
                return 0
            at = climb(path, _SPLATS, start=at - len(path))
        return path[at - 1].node.id if path[at].node.type in _PARAMETERS else 0

    def _dotted(self, syntax: Syntax, path: Path) -> BindingRole:
        """A name in an import, or in a pattern of `match`."""
        at = climb(path, frozenset({"dotted_name", "aliased_import", "relative_import"}))
        statement = path[at].node
        if statement.type not in _STATEMENTS:
            return self._pattern(path)
        if path[at + 1].field == "module_name":
            return OTHER
        if statement.type == "import_statement":
            return self._module(syntax, path, path[at + 1].node)
        return self._imported(syntax, path, at)

    def _module(self, syntax: Syntax, path: Path, item: tree_sitter.Node) -> BindingRole:
        """`import a.b` binds `a`, `import a.b as c` binds `c`."""
        is_alias = path[-1].field == "alias"
        dotted = named(item, "name") if item.type == "aliased_import" else item
        is_first = dotted is not None and path[-1].node.start_byte == dotted.start_byte
        if dotted is None or not (is_alias or (is_first and item.type == "dotted_name")):
            return OTHER
        module = syntax.written(dotted)
        module = module if is_alias else module.partition(".")[0]
        return BindingRole(RoleKind.IMPORT, scope=self.scopes(path)[0], module=module)

    def _imported(self, syntax: Syntax, path: Path, at: int) -> BindingRole:
        """`from module import name` binds `name`, with `as other` it binds `other`."""
        item, scope = path[at + 1].node, self.scopes(path)[0]
        source = named(path[at].node, "module_name")
        module = syntax.written(source).replace(" ", "") if source else "__future__"
        original = named(item, "name") if item.type == "aliased_import" else item
        name = syntax.written(original) if original else ""
        is_bound = item.type == "dotted_name" or path[-1].field == "alias"
        kind = RoleKind.IMPORT if is_bound else RoleKind.IMPORTED
        return BindingRole(kind, scope=scope, module=module, original=name)

    def _pattern(self, path: Path) -> BindingRole:
        dotted, outer = path[-2].node, path[-3].node.type
        if dotted.named_child_count == 1:
            return self._binding(path) if outer == "case_pattern" else USE
        if path[-1].node.start_byte == dotted.start_byte:
            return USE
        first = child(dotted, 0)
        is_second = child(dotted, 1) == path[-1].node
        return BindingRole(RoleKind.MEMBER, receiver=first) if is_second else OTHER

    def _function_scope(self, path: Path) -> int:
        """The scope that a `:=` binds in: not that of a comprehension."""
        inner = {step.node.id for step in path if step.node.type in _COMPREHENSIONS}
        return next(scope for scope in self.scopes(path) if scope not in inner)

    def scopes(self, path: Path) -> list[int]:
        found: list[int] = []
        is_in_function = False
        for index in range(len(path) - 2, -1, -1):
            node, field = path[index].node, path[index + 1].field
            kind = node.type
            if kind in _FUNCTIONS:
                if field == "body":
                    found.append(node.id)
                    is_in_function = True
            elif kind == "class_definition":
                if field == "body" and not is_in_function:
                    found.append(node.id)
            elif kind in _COMPREHENSIONS:
                if not _is_first_iterable(path, index):
                    found.append(node.id)
                    is_in_function = True
            elif kind == "module":
                found.append(node.id)
        return found or [path[0].node.id]

    def declared(self, path: Path) -> tree_sitter.Node | None:
        parent = path[-2].node
        if parent.type in ("typed_parameter", "typed_default_parameter"):
            return named(parent, "type")
        if parent.type in ("assignment", "named_expression"):
            right = "right" if parent.type == "assignment" else "value"
            return named(parent, "type") or named(parent, right)
        if parent.type == "as_pattern_target" and path[-4].node.type == "with_item":
            return child(path[-3].node, 0)
        return None

    def result(self, path: Path) -> tree_sitter.Node | None:
        return named(path[-2].node, "return_type")

    def bases(self, node: tree_sitter.Node) -> Sequence[tree_sitter.Node]:
        listed = named(node, "superclasses")
        found = [
            named(one, "value") if one.type == "subscript" else one
            for one in (listed.named_children if listed else [])
        ]
        return [one for one in found if one and one.type in ("identifier", "attribute")]

    def wildcards(self, syntax: Syntax) -> list[str]:
        return [
            syntax.written(source)
            for statement in syntax.root.named_children
            if statement.type == "import_from_statement"
            and any(one.type == "wildcard_import" for one in statement.named_children)
            and (source := named(statement, "module_name"))
        ]


def _is_first_iterable(path: Path, index: int) -> bool:
    """Whether the path leads from a comprehension to what its first clause iterates over: that is outside."""
    clause = path[index + 1].node
    if clause.type != "for_in_clause" or path[index + 2 : index + 3] == ():
        return False
    clauses = [one for one in path[index].node.named_children if one.type == "for_in_clause"]
    return clauses[0] == clause and path[index + 2].field == "right"
