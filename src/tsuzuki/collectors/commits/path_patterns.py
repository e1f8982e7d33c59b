"""Patterns of paths to leave out, and the default list: lock files, vendored and generated code.

A pattern without a slash is compared with the name of a file or folder at any depth, one with a slash with
the path from the top of the repository. A pattern that matches a folder matches all in it. `*` and `?` stay
within one name, `**` goes across names, `[…]` is one character of several.
"""

import re
from collections.abc import Callable, Iterable

LOCK_FILES = (
    "Cargo.lock",
    "Gemfile.lock",
    "Pipfile.lock",
    "Podfile.lock",
    "bun.lock",
    "bun.lockb",
    "composer.lock",
    "deno.lock",
    "flake.lock",
    "go.sum",
    "gradle.lockfile",
    "mix.lock",
    "npm-shrinkwrap.json",
    "package-lock.json",
    "packages.lock.json",
    "pdm.lock",
    "pnpm-lock.yaml",
    "poetry.lock",
    "pubspec.lock",
    "uv.lock",
    "yarn.lock",
)
VENDORED = (
    "bower_components",
    "node_modules",
    "third_party",
    "vendor",
    "vendored",
    ".yarn/releases",
)
GENERATED = ("*.min.js", "*.min.css", "*.js.map", "*.css.map", "*.pb.go", "*_pb2.py", "*_pb2.pyi")
DEFAULT_PATTERNS = (*LOCK_FILES, *VENDORED, *GENERATED)


def matcher(patterns: Iterable[str]) -> Callable[[str], bool]:
    """Whether a path matches one of the patterns."""
    written = [_expression(pattern) for pattern in patterns]
    expression = re.compile("|".join(written) or r"(?!)", re.DOTALL)
    return lambda path: expression.fullmatch(path) is not None


def _expression(pattern: str) -> str:
    body = pattern.strip("/")
    lead = "" if "/" in pattern.rstrip("/") else "(?:.*/)?"
    return f"(?:{lead}{_translated(body)}(?:/.*)?)"


_TOKEN = re.compile(r"\*\*/|\*\*|\*|\?|\[[!^]?[^\]]+\]|.", re.DOTALL)


def _translated(pattern: str) -> str:
    return "".join(_part(token) for token in _TOKEN.findall(pattern))


def _part(token: str) -> str:
    match token:
        case "**/":
            return "(?:.*/)?"
        case "**":
            return ".*"
        case "*":
            return "[^/]*"
        case "?":
            return "[^/]"
        case _ if len(token) > 1:
            negated = token[1] in "!^"
            inside = token[1 + negated : -1].replace("\\", r"\\").replace("[", r"\[")
            return f"(?!/)[{'^' if negated else ''}{inside.replace('^', chr(92) + '^')}]"
        case _:
            return re.escape(token)
