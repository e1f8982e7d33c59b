"""Code index: files, symbols and references of a tree, in an SQLite file of its own.

a build:       build_job (what is told of it) ← build → scan, parse_pool → parse → extract
                                                    └→ lsp (definitions of a language server)
what is kept:  index_file (where, and is it usable) ← queries
an answer:     service/answers → answers/consistent_answer → answers/freshness → the files, queries
"""

from typing import TYPE_CHECKING, Any

from tsuzuki.collectors.collector import Collector, CollectorContext, Handler

if TYPE_CHECKING:
    from tsuzuki.config import JobKind
    from tsuzuki.engine.run_context import RunContext


def _kind() -> "JobKind":
    from tsuzuki.collectors.codeindex.options import CodeIndexOptions
    from tsuzuki.config import JobKind

    return JobKind(name="codeindex", options_model=CodeIndexOptions)


def _handler(context: CollectorContext) -> Handler:
    def handle(run: "RunContext") -> dict[str, Any]:
        from tsuzuki.model.errors import extra_missing

        try:
            from tsuzuki.collectors.codeindex.collect import collect
        except ModuleNotFoundError as missing:
            if not (missing.name or "").startswith(("tree_sitter", "pathspec")):
                raise
            raise extra_missing(
                "code is to be indexed, but its parsers are not installed", extra="codeindex"
            ) from None
        return collect(context, run)

    return handle


CODEINDEX = Collector(
    name="codeindex",
    summary="Index the source code of trees, and search it.",
    kind=_kind,
    handler=_handler,
)
"""Its commands are `tsuzuki index`. They need no workspace, so they are no face of the collector."""
