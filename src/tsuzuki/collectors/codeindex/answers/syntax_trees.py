"""The syntax trees that one answer looks at, made from the bytes that the answer quotes.

Only the latest trees are kept: a tree takes many times the space of its text.
"""

from collections import OrderedDict

from tsuzuki.collectors.codeindex.answers.freshness import FreshFile, FreshFiles
from tsuzuki.collectors.codeindex.answers.parsing import parse_syntax
from tsuzuki.collectors.codeindex.answers.symbol import Site
from tsuzuki.collectors.codeindex.extract import Syntax

TREES_MAX = 64


class SyntaxTrees:
    """Trees by file, parsed when they are asked for."""

    def __init__(self, files: FreshFiles) -> None:
        self.files = files
        self._kept: OrderedDict[str, Syntax | None] = OrderedDict()

    def of(self, file: FreshFile) -> Syntax | None:
        """None if the file cannot be parsed."""
        if file.path in self._kept:
            self._kept.move_to_end(file.path)
            return self._kept[file.path]
        tree = parse_syntax(file.language, file.source.content)
        self._kept[file.path] = tree
        if len(self._kept) > TREES_MAX:
            self._kept.popitem(last=False)
        return tree

    def at(self, path: str) -> Syntax | None:
        """Of the file at a path, if there is one."""
        file = self.files.get(path)
        return self.of(file) if file else None

    def sites(self, file: FreshFile, name: str) -> list[Site]:
        """Where a file uses a name, in the order of its text."""
        if name.encode() not in file.source.content and file.source.content.isascii():
            return []
        tree = self.of(file)
        found = tree.uses(name) if tree else []
        return [Site(path=file.path, language=file.language, **one._asdict()) for one in found]
