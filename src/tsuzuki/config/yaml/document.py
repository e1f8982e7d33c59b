"""A configuration file as data, together with the place of every key and value in it."""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tsuzuki.config.yaml.nodes import KeyPath, Node, walk
from tsuzuki.config.yaml.parser import read_tree
from tsuzuki.config.yaml.source import Source, read_source
from tsuzuki.model.errors import Place


@dataclass(frozen=True, kw_only=True)
class Document:
    """What a file says (`data`: only what JSON can hold) and where it says it (`place_of_…`)."""

    source: Source
    root: Node

    @cached_property
    def data(self) -> Any:
        return self.root.plain()

    def place_of_key(self, path: KeyPath) -> Place:
        """Where the last key of `path` stands, or of the longest part of it that exists."""
        entry, node = list(walk(self.root, path))[-1]
        return self.source.place(entry.key.start if entry else node.start)

    def place_of_value(self, path: KeyPath) -> Place:
        """Where the value at `path` begins. What does not exist is sought where it should be: at
        the key it would stand under."""
        steps = list(walk(self.root, path))
        entry, node = steps[-1]
        if entry is not None and len(steps) <= len(path):
            return self.source.place(entry.key.start)
        return self.source.place(node.start)


def read_document(path: Path) -> Document:
    """The document in the file at `path`. Raises `ConfigurationError`, or `Unreachable`."""
    return parse_document(read_source(path))


def parse_value(text: str, *, name: str) -> Any:
    """One value as a file would hold it. Raises `ConfigurationError`; `name` stands for the file."""
    return parse_document(Source(file=name, text=text)).data


def parse_document(source: Source) -> Document:
    """The document in `source`. Raises `ConfigurationError` at the place of the fault."""
    return Document(source=source, root=read_tree(source))
