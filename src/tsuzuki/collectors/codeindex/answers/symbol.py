"""What an answer quotes: definitions, references and lines of text, each with its place in the tree."""

from dataclasses import asdict, dataclass
from typing import Any

MEMBER_KINDS = frozenset({"method", "field", "property", "member"})
"""Kinds that are only reached through what contains them."""

CONTAINER_KINDS = frozenset(
    {"class", "interface", "trait", "struct", "union", "enum", "object", "module", "namespace"}
)
"""Kinds whose content is better shown as an outline if it is long."""

_FAMILIES = {
    "typescript": "javascript",
    "tsx": "javascript",
    "jsx": "javascript",
    "cpp": "c",
    "css": "html",
}


def family_of(language: str) -> str:
    """Languages whose names refer to each other share a family; a reference never leaves its own."""
    return _FAMILIES.get(language, language)


@dataclass(frozen=True, kw_only=True, slots=True)
class Symbol:
    """A definition. Lines count from 1 and include the last; columns count characters from 0."""

    path: str
    language: str
    name: str
    kind: str
    container: str
    line: int
    end_line: int
    column: int
    signature: str
    doc: str

    @property
    def name_path(self) -> str:
        """`Outer/inner/name`."""
        return f"{self.container}/{self.name}" if self.container else self.name

    @property
    def is_member(self) -> bool:
        return self.kind in MEMBER_KINDS

    def as_dict(self) -> dict[str, Any]:
        return {**asdict(self), "name_path": self.name_path}


@dataclass(frozen=True, kw_only=True, slots=True)
class Site:
    """A place where a name is used."""

    path: str
    language: str
    name: str
    kind: str
    line: int
    column: int
    container: str
