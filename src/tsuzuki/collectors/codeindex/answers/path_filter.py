"""Which paths an answer may quote: patterns as in .gitignore, with `!` for what is left out, below a folder."""

from collections.abc import Sequence

import pathspec

from tsuzuki.model.errors import UsageError


class PathFilter:
    """`*.py`, `src/`, `docs/**/*.md`, `!tests`. Without a pattern every path passes."""

    def __init__(self, patterns: Sequence[str] = (), *, scope: str = "") -> None:
        self._scope = scope
        wanted = [pattern for pattern in patterns if pattern.strip()]
        self._included = _rules([one for one in wanted if not one.startswith("!")])
        self._excluded = _rules([one[1:] for one in wanted if one.startswith("!")])

    def __call__(self, path: str) -> bool:
        if not is_in_scope(path, self._scope):
            return False
        if self._included is not None and not self._included.match_file(path):
            return False
        return self._excluded is None or not self._excluded.match_file(path)


def is_in_scope(path: str, scope: str) -> bool:
    """Whether a path is the scope itself, a file, or lies below it, a folder. Everything is in no scope."""
    return scope in ("", path) or path.startswith(f"{scope}/")


def _rules(patterns: list[str]) -> pathspec.GitIgnoreSpec | None:
    try:
        return pathspec.GitIgnoreSpec.from_lines(patterns) if patterns else None
    except ValueError as problem:
        raise UsageError(
            f"invalid path pattern: {problem}",
            hint="For example: '*.py', 'src/', '!tests'",
            code="bad_pattern",
        ) from None
