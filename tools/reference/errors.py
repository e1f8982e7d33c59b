"""Reference page of errors: each code with exit code, HTTP status, message and hint.

The codes are read from the source: where an error is made, and from the classes of errors. A code that is handed over
in a variable is not found.
"""

import ast
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import tsuzuki
from tools.reference.markdown import code, page, table
from tsuzuki.cli.errors import EXIT_CODES, UnexpectedError
from tsuzuki.model import errors
from tsuzuki.model.errors import ConfigurationError, TsuzukiError
from tsuzuki.web.problems import STATUSES, RequestError

SOURCE = Path(tsuzuki.__file__).parent
_CLASS = re.compile(r"^class (\w+)\((\w+)", re.MULTILINE)
_IN_A_FILE = ("ConfigProblem", "InvalidValue", "error", "_url_error", "extra_missing")
"""Calls that create a `ConfigurationError`, at once or when a file's problems are reported."""


@dataclass(frozen=True, kw_only=True)
class Origin:
    """A place in the source that makes an error."""

    code: str
    exit_code: str
    status: str
    message: str
    hint: str


def errors_page() -> str:
    origins = defaultdict(list)
    for origin in _origins():
        origins[origin.code].append(origin)
    return page(
        "Errors",
        "An error has a stable code. A command prints `error[CODE]: …` with a hint on stderr, or with `--output json`"
        " an object with `code`, `message` and `hint`; the API returns a problem document with the same `code`. Angle"
        " brackets mark values. A mistake in a definition sent to the API returns 422 instead of 503.",
        "## Kinds",
        table(("kind", "code", "exit code", "HTTP", "retry may help", "meaning"), _kinds()),
        "## Codes",
        table(
            ("code", "exit code", "HTTP", "message", "hint"),
            [_row(name, origins[name]) for name in sorted(origins)],
        ),
    )


def _kinds() -> Iterator[tuple[str, ...]]:
    for kind in vars(errors).values():
        if isinstance(kind, type) and issubclass(kind, TsuzukiError):
            yield (
                code(kind.__name__),
                code(kind.code),
                _exit(kind),
                _status(kind),
                "no" if kind.permanent else "yes",
                inspect.getdoc(kind) or "",
            )


def _row(name: str, origins: list[Origin]) -> tuple[str, ...]:
    return (
        code(name),
        _joined(", ", [one.exit_code for one in origins]),
        _joined(", ", [one.status for one in origins]),
        _joined("; ", [one.message.rstrip(".") for one in origins]),
        _joined(" ", [one.hint for one in origins]),
    )


def _joined(mark: str, texts: list[str]) -> str:
    return mark.join(dict.fromkeys(filter(None, texts)))


def _exit(kind: type[TsuzukiError]) -> str:
    return str(next(EXIT_CODES[one] for one in kind.__mro__ if one in EXIT_CODES))


def _status(kind: type[TsuzukiError]) -> str:
    return str(next(STATUSES[one] for one in kind.__mro__ if one in STATUSES))


def _origins() -> Iterator[Origin]:
    texts = [
        path.read_text(encoding="utf-8")
        for path in sorted(SOURCE.rglob("*.py"))
        if "sandbox" not in path.parts
    ]
    kinds = _kinds_by_name(texts)
    for text in texts:
        if "code=" in text or "\n    code = " in text:
            for node in ast.walk(ast.parse(text)):
                if isinstance(node, ast.Call):
                    yield from _made_by(node, kinds)
                elif isinstance(node, ast.ClassDef) and node.name in kinds:
                    yield from _of_class(node, kinds[node.name])


def _kinds_by_name(texts: list[str]) -> dict[str, type[TsuzukiError]]:
    """For each class of the tree the nearest of its parents in `model.errors`, or itself."""
    parents = dict(pair for text in texts for pair in _CLASS.findall(text))
    found: dict[str, type[TsuzukiError]] = {
        kind.__name__: kind for kind in (RequestError, UnexpectedError)
    }
    for name in parents:
        nearest = name
        while nearest in parents and not hasattr(errors, nearest):
            nearest = parents[nearest]
        kind = getattr(errors, nearest, None)
        if isinstance(kind, type) and issubclass(kind, TsuzukiError):
            found.setdefault(name, kind)
    return found


def _made_by(node: ast.Call, kinds: dict[str, type[TsuzukiError]]) -> Iterator[Origin]:
    given = {word.arg: word.value for word in node.keywords if word.arg}
    name = ast.unparse(node.func).rpartition(".")[2]
    kind = ConfigurationError if name in _IN_A_FILE else kinds.get(name)
    if kind is None or "code" not in given:
        return
    first = given.get("message") or (node.args[0] if node.args else None)
    of_http = kind is RequestError
    for text in _constants(given["code"]):
        yield Origin(
            code=text,
            exit_code="" if of_http else _exit(kind),
            status=ast.unparse(given["status"]) if of_http else _status(kind),
            message=_said(first),
            hint=_said(given.get("hint")),
        )


def _of_class(node: ast.ClassDef, kind: type[TsuzukiError]) -> Iterator[Origin]:
    """Code of an error class outside `model.errors`, whose classes have their own table."""
    for line in node.body:
        if ast.unparse(line).startswith("code = ") and not hasattr(errors, node.name):
            yield Origin(
                code=ast.literal_eval(line.value) if isinstance(line, ast.Assign) else "",
                exit_code=_exit(kind),
                status=_status(kind),
                message=(ast.get_docstring(node) or "").partition("\n\n")[0],
                hint="",
            )


def _constants(node: ast.expr) -> Iterator[str]:
    """The codes that an expression can have, as far as they are written out."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.JoinedStr():
            yield _said(node)
        case ast.IfExp(body=body, orelse=orelse):
            yield from _constants(body)
            yield from _constants(orelse)


def _said(node: ast.expr | None) -> str:
    """Text of a message, with placeholders in angle brackets."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(_said(part) for part in parts)
        case ast.FormattedValue(value=value):
            return f"<{_noun(value)}>"
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            return _said(left) + _said(right)
        case ast.BoolOp(op=ast.Or(), values=values):
            return " ".join(filter(None, map(_said, values)))
        case _:
            return ""


def _noun(node: ast.expr) -> str:
    """The last name of an expression: `error.place` is a place."""
    names = [one.attr for one in ast.walk(node) if isinstance(one, ast.Attribute)]
    names += [one.id for one in ast.walk(node) if isinstance(one, ast.Name)]
    return names[0].strip("_").replace("_", " ") if names else "value"
