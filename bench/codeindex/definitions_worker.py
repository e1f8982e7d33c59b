"""A worker process that looks for definitions only, as ctags does."""

import tree_sitter

from tsuzuki.collectors.codeindex.extract import grammar
from tsuzuki.collectors.codeindex.parsing.worker import main as work


def without_references(language: tree_sitter.Language, source: str) -> tree_sitter.Query:
    """The query without the patterns that capture references alone."""
    query = tree_sitter.Query(language, source)
    for pattern in range(query.pattern_count):
        start, end = query.start_byte_for_pattern(pattern), query.end_byte_for_pattern(pattern)
        written = source.encode()[start:end]
        if b"@def." not in written and b"@scope." not in written:
            query.disable_pattern(pattern)
    return query


class _Queries:
    """Stands for the module `tree_sitter` where the grammars are loaded."""

    def __getattr__(self, name: str) -> object:
        return without_references if name == "Query" else getattr(tree_sitter, name)


def main() -> None:
    vars(grammar)["tree_sitter"] = _Queries()
    work()
