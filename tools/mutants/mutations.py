"""The changes that may be made to a file, each a replacement of some of its text."""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

BOUNDARIES: dict[type[ast.cmpop], str] = {ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">"}
OPERATOR = re.compile("[<>]=?")
CONJUNCTIONS = frozenset({"and_", "filter", "or_", "where"})
DECLARATIONS = frozenset(
    {"Field", "dataclass", "field", "mapped_column", "Column", "Argument", "Option"}
)
"""Calls whose keywords describe rather than decide."""


Placed = ast.expr | ast.keyword | ast.stmt


@dataclass(frozen=True, kw_only=True)
class Mutant:
    """`start` and `end` are places in the bytes of the file; `line` is where the statement begins that is changed."""

    path: Path
    kind: str
    line: int
    start: int
    end: int
    new: str

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.new.encode() + source[self.end :]

    def told(self, source: bytes) -> str:
        """The kind and the changed text, within its line where it is only a part of one."""
        first = source.rfind(b"\n", 0, self.start) + 1
        last = source.find(b"\n", self.end)
        before, after = source[first : self.start].decode(), source[self.end : last].decode()
        old = source[self.start : self.end].decode()
        told = f"{before}[{old} -> {self.new}]{after}"
        return f"{self.kind}: {' '.join(told.split())[:240]}"


def mutants_of(path: Path, source: bytes) -> list[Mutant]:
    return [*_File(path, source).mutants()]


class _File:
    def __init__(self, path: Path, source: bytes) -> None:
        self._path = path
        self._source = source
        self._tree = ast.parse(source)
        self._lines = [0]
        for line in source.splitlines(keepends=True):
            self._lines.append(self._lines[-1] + len(line))

    def mutants(self) -> Iterator[Mutant]:
        for statement in _statements(self._tree):
            yield from self._of_statement(statement)
            for node in _expressions(statement):
                yield from self._of_expression(node, statement)

    def _of_statement(self, statement: ast.stmt) -> Iterator[Mutant]:
        match statement:
            case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Constant):
                yield self._new("negated condition", statement, test, f"not ({self._text(test)})")
        match statement:
            case ast.If(body=[ast.Return() | ast.Continue() | ast.Raise() as leave]):
                yield self._new("dropped early return", statement, leave, "pass")
            case ast.Expr(value=ast.Call() | ast.Await()) | ast.AugAssign():
                yield self._new("dropped statement", statement, statement, "pass")
            case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
                yield self._new("dropped statement", statement, statement, "pass")

    def _of_expression(self, node: ast.expr, statement: ast.stmt) -> Iterator[Mutant]:
        match node:
            case ast.IfExp(test=test):
                yield self._new("negated condition", statement, test, f"not ({self._text(test)})")
            case ast.Compare(left=left, ops=[operator], comparators=[right]):
                if (word := BOUNDARIES.get(type(operator))) is not None:
                    yield self._between("boundary", statement, left, right, word)
            case ast.BoolOp():
                word = " or " if isinstance(node.op, ast.And) else " and "
                new = word.join(f"({self._text(value)})" for value in node.values)
                yield self._new("and / or", statement, node, f"({new})")
            case ast.Call():
                yield from self._of_call(node, statement)

    def _of_call(self, call: ast.Call, statement: ast.stmt) -> Iterator[Mutant]:
        called = call.func
        name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
        if name in CONJUNCTIONS:
            for argument in call.args:
                if len(call.args) > 1 or name == "where":
                    yield self._without("dropped conjunct", call, argument, statement)
        elif name not in DECLARATIONS:
            for keyword in call.keywords:
                if keyword.arg is not None:
                    yield self._without("dropped keyword", call, keyword, statement)

    def _without(
        self, kind: str, call: ast.Call, part: ast.expr | ast.keyword, statement: ast.stmt
    ) -> Mutant:
        given: list[Placed] = [*call.args, *call.keywords]
        parts = [self._text(one) for one in given if one is not part]
        return self._new(kind, statement, call, f"{self._text(call.func)}({', '.join(parts)})")

    def _text(self, node: Placed) -> str:
        return self._source[self._start(node) : self._end(node)].decode()

    def _new(self, kind: str, statement: ast.stmt, node: Placed, new: str) -> Mutant:
        return self._from_to(kind, statement, self._start(node), self._end(node), new)

    def _between(
        self, kind: str, statement: ast.stmt, left: ast.expr, right: ast.expr, new: str
    ) -> Mutant:
        """Replace the operator between two operands and keep brackets and spaces."""
        start, end = self._end(left), self._start(right)
        written = self._source[start:end].decode()
        return self._from_to(kind, statement, start, end, OPERATOR.sub(new, written))

    def _from_to(self, kind: str, statement: ast.stmt, start: int, end: int, new: str) -> Mutant:
        return Mutant(
            path=self._path, kind=kind, line=statement.lineno, start=start, end=end, new=new
        )

    def _start(self, node: Placed) -> int:
        return self._lines[node.lineno - 1] + node.col_offset

    def _end(self, node: Placed) -> int:
        return self._lines[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)


def _statements(tree: ast.Module) -> Iterator[ast.stmt]:
    """Statements inside functions; those outside only declare things."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for statement in function.body:
                yield from _own(statement)


def _own(statement: ast.stmt) -> Iterator[ast.stmt]:
    """A statement and those in it, without those of functions and classes in it."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return
    yield statement
    for child in ast.iter_child_nodes(statement):
        if isinstance(child, ast.stmt):
            yield from _own(child)
        elif isinstance(child, ast.ExceptHandler | ast.match_case):
            for inner in child.body:
                yield from _own(inner)


def _expressions(statement: ast.stmt) -> Iterator[ast.expr]:
    """Expressions of the statement itself, without those of nested statements."""
    waiting: list[ast.AST] = [*ast.iter_child_nodes(statement)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt | ast.ExceptHandler | ast.match_case | ast.JoinedStr):
            continue
        if isinstance(node, ast.expr):
            yield node
        waiting.extend(ast.iter_child_nodes(node))
