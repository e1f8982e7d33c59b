"""Count how often YAML text is parsed."""

import pytest

from tsuzuki.config.yaml import document
from tsuzuki.config.yaml.nodes import Node
from tsuzuki.config.yaml.parser import parse_tree
from tsuzuki.config.yaml.source import YamlSource


def count_parses(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that are parsed from now on, in a list that grows with each of them."""
    parsed: list[str] = []

    def counting(source: YamlSource) -> Node:
        parsed.append(source.text)
        return parse_tree(source)

    monkeypatch.setattr(document, "parse_tree", counting)
    return parsed
