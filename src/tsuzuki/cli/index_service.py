"""The service of the code index, for the commands: it needs no workspace, but the extra."""

from contextlib import contextmanager
from typing import TYPE_CHECKING

from tsuzuki.cli.invocation import Invocation
from tsuzuki.model.errors import extra_missing

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tsuzuki.collectors.codeindex.service.builds import Builds


@contextmanager
def extra_required() -> "Iterator[None]":
    """Around the import of a service of the code index: says which extra is missing, if it is."""
    try:
        yield
    except ModuleNotFoundError as missing:
        if not (missing.name or "").startswith(("tree_sitter", "pathspec")):
            raise
        raise extra_missing(
            "code cannot be indexed: the parsers are not installed", extra="codeindex"
        ) from None


def builds_service(invocation: Invocation) -> "Builds":
    with extra_required():
        from tsuzuki.collectors.codeindex.service.builds import Builds
    return Builds(environ=invocation.environ)


def language_servers(said: "Sequence[str]") -> "dict[str, tuple[str, ...]]":
    """The commands of `--lsp` options, by language."""
    from tsuzuki.collectors.codeindex.service.builds import read_said

    return read_said(said)
