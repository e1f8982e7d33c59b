"""A YAML document: its data, and the line and column of every key and value in it.

Parsing is the slow part, and one command reads the file several times. So the trees of the last few
texts are cached, by the text itself: an unchanged file is parsed once per process, and a changed one
is noticed even if its size and modification time stay the same.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

from tsuzuki.config.yaml.nodes import KeyPath, Node, walk_path
from tsuzuki.config.yaml.parser import ParsedTree, parse_tree
from tsuzuki.config.yaml.source import YamlSource, read_source
from tsuzuki.model.errors import ConfigurationError, FilePlace

_TREES_MAX = 4


@dataclass(frozen=True, kw_only=True)
class YamlDocument:
    """The `data` of a file (JSON types only) and the places of it (`place_of_…`)."""

    source: YamlSource
    root: Node
    duplicates: tuple[ConfigurationError, ...] = ()
    """Of keys that are given twice, if they were not refused at once: `data` has only the first of each."""

    @cached_property
    def data(self) -> Any:
        return self.root.to_data()

    def place_of_key(self, path: KeyPath) -> FilePlace:
        """The place of the last key of `path`, or of the longest part of `path` that exists."""
        entry, node = list(walk_path(self.root, path))[-1]
        return self.source.place(entry.key.start if entry else node.start)

    def place_of_value(self, path: KeyPath) -> FilePlace:
        """The place of the value at `path`. For a missing value: the place of the key that it is
        missing under."""
        steps = list(walk_path(self.root, path))
        entry, node = steps[-1]
        if entry is not None and len(steps) <= len(path):
            return self.source.place(entry.key.start)
        return self.source.place(node.start)


def read_document(path: Path) -> YamlDocument:
    """Read and parse the file at `path`. Raises `ConfigurationError`, or `FileUnusable`."""
    return parse_document(read_source(path))


def parse_document(source: YamlSource, *, with_duplicates: bool = False) -> YamlDocument:
    """Parse `source`. Raises `ConfigurationError` at the place of a syntax error, and of a key that is given twice
    unless the caller reports these itself (`with_duplicates`)."""
    root, duplicates = _cached_tree(source)
    if duplicates and not with_duplicates:
        raise duplicates[0]
    return YamlDocument(source=source, root=root, duplicates=duplicates)


def parse_value(text: str, *, name: str) -> Any:
    """Parse one value, such as an option's. Raises `ConfigurationError`, with `name` as its file."""
    return parse_document(YamlSource(file=name, text=text)).data


@lru_cache(maxsize=_TREES_MAX)
def _cached_tree(source: YamlSource) -> ParsedTree:
    """The tree of `source`. Trees are immutable, so callers can share one; data is not, so each
    `YamlDocument` makes its own."""
    return parse_tree(source)
