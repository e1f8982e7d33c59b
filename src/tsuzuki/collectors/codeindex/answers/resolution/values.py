"""What an expression can be, as far as a reference needs it."""

from dataclasses import dataclass

from tsuzuki.collectors.codeindex.answers.resolution.scoped_file import Bound, ScopedFile
from tsuzuki.collectors.codeindex.queries.lookups import Symbol


@dataclass(frozen=True)
class NamedDefinition:
    """A definition of the tree. Several of one name in one place, such as overloads, count as one."""

    symbols: tuple[Symbol, ...]


@dataclass(frozen=True)
class Module:
    """A module of the tree."""

    path: str


@dataclass(frozen=True)
class Instance:
    """An object of a class of the tree."""

    symbols: tuple[Symbol, ...]


@dataclass(frozen=True, eq=False)
class Local:
    """A parameter or a variable that the index does not list."""

    file: ScopedFile
    bound: tuple[Bound, ...]


Value = NamedDefinition | Module | Instance | Local
