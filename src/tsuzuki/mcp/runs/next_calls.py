"""Errors of the services, with the call that comes next: their own hints name commands, which an agent may not have."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from tsuzuki.mcp.arguments import call_words
from tsuzuki.model.errors import Conflict, NotFound, UsageError


@contextmanager
def told_next(tool: str, arguments: Mapping[str, Any]) -> Iterator[None]:
    """An error that another call answers names that call."""
    try:
        yield
    except (NotFound, Conflict, UsageError) as problem:
        words = f"Next: {call_words(tool, arguments)}"
        problem.hint = f"{problem.hint}\n{words}" if problem.hint else words
        raise
