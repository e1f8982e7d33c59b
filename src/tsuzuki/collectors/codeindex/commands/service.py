"""The code index service for commands, which requires the extra but no workspace."""

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tsuzuki.cli.invocation import Invocation
from tsuzuki.collectors.codeindex.plugin import COLLECTOR
from tsuzuki.model.errors import extra_missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tsuzuki.collectors.codeindex.service.builds import Builds


@contextmanager
def extra_required() -> "Iterator[None]":
    """Around an import from the code index: raises `ConfigurationError` that names the extra if it is not installed."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if not (missing.name or "").startswith(COLLECTOR.needs):
            raise
        raise extra_missing(
            "the parsers for indexing code are not installed", extra=COLLECTOR.name
        ) from None


def builds_service(invocation: Invocation) -> "Builds":
    with extra_required():
        from tsuzuki.collectors.codeindex.service.builds import Builds
    return Builds(environ=invocation.environ)


def language_servers(said: "Sequence[str]") -> "dict[str, tuple[str, ...]]":
    """The commands of `--lsp` options, by language."""
    from tsuzuki.collectors.codeindex.service.builds import read_said

    return read_said(said)
