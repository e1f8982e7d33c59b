"""Code index: files, symbols and references of a tree, in an SQLite file of its own.

a build:       build_job (what is told of it) ← build → scan, parse_pool → parse → extract
                                                    └→ lsp (definitions of a language server)
what is kept:  index_file (where, and is it usable) ← queries
an answer:     service/answers → answers/consistent_answer → answers/freshness → the files, queries
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from tsuzuki.collectors.collector import (
    CheckContext,
    Collector,
    CollectorContext,
    Handler,
    ServiceContext,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tsuzuki.collectors.codeindex.service.job_trees import JobTrees
    from tsuzuki.config import JobKind
    from tsuzuki.engine.run_context import RunContext
    from tsuzuki.model.check import Check


def _kind() -> "JobKind":
    from tsuzuki.collectors.codeindex.options import CodeIndexOptions
    from tsuzuki.config import JobKind
    from tsuzuki.model.job_question import JobQuestion

    text = "Folder of the source code (several with commas)"
    return JobKind(
        name="codeindex",
        options_model=CodeIndexOptions,
        questions=(JobQuestion(key=("roots",), text=text, is_list=True),),
        usual_schedule="every 10m",
    )


def _handler(context: CollectorContext) -> Handler:
    def handle(run: "RunContext") -> dict[str, Any]:
        with _parsers_required("code is to be indexed, but its parsers are not installed"):
            from tsuzuki.collectors.codeindex.collect import collect
        return collect(context, run)

    return handle


def _service(context: ServiceContext) -> "JobTrees":
    with _parsers_required("code cannot be asked about: the parsers are not installed"):
        from tsuzuki.collectors.codeindex.service.job_trees import JobTrees
    return JobTrees(context)


@contextmanager
def _parsers_required(message: str) -> Iterator[None]:
    """Around an import: says which extra is missing, if it is."""
    from tsuzuki.model.errors import extra_missing

    try:
        yield
    except ModuleNotFoundError as missing:
        if not (missing.name or "").startswith(("tree_sitter", "pathspec")):
            raise
        raise extra_missing(message, extra="codeindex") from None


def _checks(context: CheckContext) -> "Iterable[Check]":
    from tsuzuki.collectors.codeindex.checks import checks

    return checks(context)


CODEINDEX = Collector(
    name="codeindex",
    summary="Index the source code of trees, and search it.",
    kind=_kind,
    handler=_handler,
    checks=_checks,
    service=_service,
)
"""Its commands are `tsuzuki index`. They need no workspace, so they are no face of the collector. The service is for
faces that may ask about the trees of jobs only."""
