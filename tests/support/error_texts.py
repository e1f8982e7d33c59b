"""The texts of errors that a page can show, read from the source: messages and hints, with numbered places.

A value that is put into a text becomes a place: `{1}`, `{2}`. A text that is one of several constants, that a
function of the module returns, or that is handed to a function which makes the error, is followed within its module.
"""

import ast
import itertools
import json
import re
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import TypeAlias

import tsuzuki
from tsuzuki.config.schema.validation import EXPECTED_BY_ERROR, format_value
from tsuzuki.store.sql.driver_errors import POSTGRES_ERRORS
from tsuzuki.store.sql.read_limit import ASK_FOR_LESS

ROOT = Path(tsuzuki.__file__).parent
NOT_ON_PAGES = (
    *("cli", "mcp", "sandbox", "library", "testing"),  # other hosts
    *(
        f"collectors/{name}/{part}"
        for name in ("books", "codeindex", "commits", "feeds")
        for part in ("commands", "tools", "sandbox", "demo.py", "api", "api.py", "stream.py")
    ),
    *("web/api", "web/stream", "web/agents.py", "web/hooks.py", "web/server.py"),
    *("web/idempotency.py", "web/preconditions.py", "web/security/bodies.py"),
    *("web/security/authentication.py",),  # a page asks to sign in instead
    *(
        "engine/executors",
        "engine/worker",
        "engine/run_context.py",
        "engine/run_counts.py",
        "engine/run_until_idle.py",
    ),
    *("engine/coordination", "store/wakeups", "store/sql/sqlite.py"),  # at the start of a process
    "store/sql/caller_connections.py",  # only the library lends connections
    *(
        "store/backup.py",
        "store/restore.py",
        "services/local_engine.py",
        "services/metrics_server.py",
    ),
    *("services/api_requests.py", "services/webhooks.py"),
    *("collectors/codeindex/lsp", "collectors/codeindex/builds/worktrees.py"),
)
"""Folders and files whose errors no page shows."""
AT_OFFSET = "error"
"""The method of a source text that makes an error; its message follows the position."""
OTHER_MAKERS = {
    "InvalidValue",
    "ConfigProblem",
    "PartProblem",
    "extra_missing",
    "Expects",
    "limited_reads",
}
MAKERS_BY_FOLDER = {
    "web": {"ValueError"},  # of validators of forms: pydantic reports what they say
    "config": {"Uneditable", "_Translation", AT_OFFSET},
    "collectors/codeindex/extract": {"ExtractionFailed"},
    "collectors/commits/branch.py": {"_note"},
    "collectors/feeds": {"OutputRefused", "PageFailed"},
}
TEXT_POSITIONS = {AT_OFFSET: 1, "ExtractionFailed": 1, "_note": 1}
"""Which argument of a call is the text; of others the first."""
RETURNED = {
    "collectors/codeindex/parsing/parse.py": "_not_parsed",
    "collectors/commits/queries/notes.py": "_sentence",
    "collectors/feeds/entries/filters.py": "cause",
}
"""Functions whose texts are stored, and shown by pages."""
STORED = {
    "collectors/codeindex": (
        "the parser crashed or did not end in time",
        "the build process died; the next build continues from here",
        "cancelled",
    ),
    "collectors/feeds": (
        "listed before the feed was added (backfill: {1})",
        "the page has no text",
        "{1} characters",
        "{1} more attachments were not read",
        "the page is empty",
        "the file is labeled as a PDF but is not one",
        "files of type {1} are not supported",
        "the text was cut to {1} characters",
        "only the first {1} characters of the page were read",
        "only the first {1} characters of the text were kept",
        "only {1} of {2} pages of the PDF were read",
        "page {1} of the PDF cannot be read",
        "the PDF has no text; it may consist of images",
        "reading the PDF took too much time or memory",
        "the page could not be analyzed",
        "only its tags were removed",
    ),
}
"""Texts of what became of a file or a page."""
KEPT = "; what was collected before is kept"
"""Suffix of many collection notes, translated separately."""
DEPTH_MAX = 20
TEXTS_MAX = 24
_CLASS = re.compile(r"^class (\w+)\((\w+)\):", re.MULTILINE)
_PLACE = re.compile(r"\{\d+\}")
_Parts: TypeAlias = tuple[str | ast.expr, ...]


@cache
def page_error_texts() -> dict[str, str]:
    """Each text with the file that has it."""
    sources = {
        file.relative_to(ROOT).as_posix(): file.read_text("utf-8")
        for file in sorted(ROOT.rglob("*.py"))
    }
    makers = _error_classes(sources.values()) | OTHER_MAKERS
    found = dict(_of_tables())
    for name, source in sources.items():
        wanted = makers.union(
            *(MAKERS_BY_FOLDER[one] for one in MAKERS_BY_FOLDER if _is_in(name, one))
        )
        if not _is_on_pages(name):
            continue
        if any(f"{maker}(" in source for maker in wanted) or name in RETURNED:
            module = _Module(ast.parse(source))
            for text in (*module.texts(wanted), *module.returned(RETURNED.get(name))):
                found.setdefault(text.removesuffix(KEPT), name)
    return found


def _is_on_pages(name: str) -> bool:
    return not any(_is_in(name, part) for part in NOT_ON_PAGES)


def _is_in(name: str, part: str) -> bool:
    return name == part or name.startswith(f"{part}/")


def _of_tables() -> Iterator[tuple[str, str]]:
    """Texts that are looked up by a code, or that are a default."""
    for text in EXPECTED_BY_ERROR.values():
        yield re.sub(r"\{\w+\}", "{1}", text), "config/schema/validation.py"
    for what, hint in POSTGRES_ERRORS.values():
        yield f"the database {{1}} {what}", "store/sql/driver_errors.py"
        yield hint, "store/sql/driver_errors.py"
    yield ASK_FOR_LESS, "store/sql/read_limit.py"
    yield from ((text, folder) for folder, texts in STORED.items() for text in texts)
    for wrong in ("{", "[", '{"a"', "[1 2]", '"', "1 2", '"\\x"', '"\\u12"', '"\n"'):
        try:
            json.loads(wrong)
        except json.JSONDecodeError as problem:
            yield problem.msg, "json"
    for value in (None, {}, []):
        yield format_value(value), "config/schema/validation.py"
    for what in ("token", "user"):
        yield f"{{1}} is not a valid {what} name", "services/access/permissions.py"


def _error_classes(sources: Iterable[str]) -> set[str]:
    """The names of the classes of the tree, in all modules."""
    pairs = [pair for source in sources for pair in _CLASS.findall(source)]
    known = {"TsuzukiError"}
    while more := {name for name, above in pairs if above in known} - known:
        known |= more
    return known


class _Module:
    def __init__(self, tree: ast.Module) -> None:
        self._scopes: dict[ast.AST, ast.AST] = {}
        nodes = list(ast.walk(tree))
        self._calls = [node for node in nodes if isinstance(node, ast.Call)]
        self._assignments = [node for node in nodes if isinstance(node, ast.Assign)]
        self._loops = [node for node in nodes if isinstance(node, ast.For)]
        self._functions = {node.name: node for node in nodes if isinstance(node, ast.FunctionDef)}
        for function in self._functions.values():
            self._scopes.update(dict.fromkeys(ast.walk(function), function))

    def texts(self, makers: set[str]) -> Iterator[str]:
        for call in self._calls:
            if _called(call) in makers or self._is_class_given(call, makers):
                for expression in _text_arguments(call):
                    yield from self._templates(expression)

    def returned(self, function: str | None) -> Iterator[str]:
        """Expressions a function of the module returns, alone or in a tuple."""
        node = self._functions.get(function or "")
        for one in ast.walk(node) if node else ():
            if isinstance(one, ast.Return) and one.value is not None:
                values = one.value.elts if isinstance(one.value, ast.Tuple) else [one.value]
                for value in values:
                    yield from self._templates(value)

    def _templates(self, expression: ast.expr) -> Iterator[str]:
        for parts in self._followed(expression):
            text = _template(parts)
            if any(sign.isalpha() for sign in _PLACE.sub("", text)):
                yield text

    def _is_class_given(self, call: ast.Call, makers: set[str]) -> bool:
        """Whether a function raises an error class passed as a parameter: `kind: type[SourceFailed]`."""
        scope = self._scopes.get(call)
        if not isinstance(scope, ast.FunctionDef):
            return False
        for one in (*scope.args.args, *scope.args.kwonlyargs):
            match one.annotation:
                case ast.Subscript(value=ast.Name(id="type"), slice=ast.Name(id=name)):
                    if one.arg == _called(call) and name in makers:
                        return True
        return False

    def _followed(self, node: ast.expr, depth: int = 0) -> list[_Parts]:
        """The alternatives of a text, each as constants and expressions."""
        match node:
            case _ if depth > DEPTH_MAX:
                return [(node,)]
            case ast.Constant(value=text):
                return [(text,)] if isinstance(text, str) else []
            case ast.JoinedStr(values=values):
                return self._joined(values, depth)
            case ast.BinOp(op=ast.Add(), left=left, right=right):
                return self._joined([left, right], depth)
            case ast.FormattedValue(value=value, conversion=-1, format_spec=None):
                return self._followed(value, depth + 1)
            case ast.IfExp(body=body, orelse=other):
                return self._each([body, other], depth)
            case ast.BoolOp(values=values):
                return self._each(values, depth)
            case ast.Call():
                return self._called_text(node, depth)
            case ast.Name():
                return self._texts_of(node, depth)
            case _:
                return [(node,)]

    def _called_text(self, node: ast.Call, depth: int) -> list[_Parts]:
        match node:
            case ast.Call() if _called(node) == "did_you_mean":
                return [("",)]
            case ast.Call(func=ast.Attribute(value=text, attr="strip")):
                return self._followed(text, depth + 1)
            case ast.Call(args=[text, *_]) if _called(node) == "redacted":
                return self._followed(text, depth + 1)
            case ast.Call(func=ast.Attribute(value=ast.Constant(value=str(text)), attr="format")):
                return [_cut_at_values(text, node)]
            case _:
                return self._texts_of(node, depth)

    def _texts_of(self, node: ast.Name | ast.Call, depth: int) -> list[_Parts]:
        found = self._each(self._values_of(node), depth)
        return found if found and all(map(_is_text, found)) else [(node,)]

    def _each(self, nodes: Iterable[ast.expr], depth: int) -> list[_Parts]:
        return [parts for node in nodes for parts in self._followed(node, depth + 1)]

    def _joined(self, values: list[ast.expr], depth: int) -> list[_Parts]:
        each = [self._followed(value, depth + 1) or [("",)] for value in values]
        products = itertools.islice(itertools.product(*each), TEXTS_MAX)
        return [tuple(itertools.chain.from_iterable(parts)) for parts in products]

    def _values_of(self, node: ast.Name | ast.Call) -> Iterator[ast.expr]:
        """Values assigned to a name, or returned by a function of the module."""
        if isinstance(node, ast.Call):
            function = self._functions.get(_called(node))
            for one in ast.walk(function) if function else ():
                if isinstance(one, ast.Return) and one.value is not None:
                    yield one.value
            return
        scope = self._scopes.get(node)
        if isinstance(scope, ast.FunctionDef):
            yield from self._given(scope, node.id)
        yield from self._assigned(node.id, scope)
        for loop in self._loops:
            if self._scopes.get(loop) is scope:
                yield from self._of_rows(loop, node.id)

    def _given(self, function: ast.FunctionDef, name: str) -> Iterator[ast.expr]:
        """Arguments that callers pass for the parameter `name`."""
        names = [one.arg for one in function.args.args if one.arg not in ("self", "cls")]
        for call in self._calls:
            if _called(call) == function.name:
                yield from (one.value for one in call.keywords if one.arg == name)
                position = names.index(name) if name in names else len(call.args)
                given = call.args[position : position + 1]
                yield from (one for one in given if not isinstance(one, ast.Starred))

    def _assigned(self, name: str, scope: ast.AST | None) -> Iterator[ast.expr]:
        for one in self._assignments:
            if self._scopes.get(one) in (scope, None):
                for target in one.targets:
                    yield from _values_for(target, one.value, name)

    def _of_rows(self, loop: ast.For, name: str) -> Iterator[ast.expr]:
        """The values of `name` in a loop over rows that are written out."""
        rows = [loop.iter]
        if isinstance(loop.iter, ast.Name):
            rows = list(self._assigned(loop.iter.id, self._scopes.get(loop)))
        for row in rows:
            for element in row.elts if isinstance(row, ast.Tuple | ast.List) else ():
                yield from _values_for(loop.target, element, name)


def _called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


def _text_arguments(call: ast.Call) -> Iterator[ast.expr]:
    position = TEXT_POSITIONS.get(_called(call), 0)
    given = call.args[position : position + 1]
    yield from (one for one in given if not isinstance(one, ast.Starred))
    yield from (one.value for one in call.keywords if one.arg in ("message", "hint"))


def _values_for(target: ast.expr, value: ast.expr, name: str) -> Iterator[ast.expr]:
    match target, value:
        case ast.Name(id=found), _ if found == name:
            yield value
        case ast.Tuple(elts=targets), ast.Tuple(elts=values):
            for one, of_one in zip(targets, values, strict=False):
                yield from _values_for(one, of_one, name)


def _cut_at_values(text: str, node: ast.expr) -> _Parts:
    first, *others = text.split("{}")
    return (first, *(part for other in others for part in (node, other)))


def _is_text(parts: _Parts) -> bool:
    return any(isinstance(part, str) for part in parts)


def _template(parts: _Parts) -> str:
    """Neighbouring values are one place."""
    text, count = "", 0
    for part in parts:
        if isinstance(part, str):
            text += part
        elif not text.endswith(f"{{{count}}}"):
            count += 1
            text += f"{{{count}}}"
    return text.strip()
