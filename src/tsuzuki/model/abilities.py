"""Abilities: what a worker can execute, and what a job needs of its worker.

A worker registers its abilities, and the leader assigns it no run that needs more. A function is known by its name, and
a name says nothing about which code it stands for: in `__main__` it belongs to the program that defined the job.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any, NamedTuple

from tsuzuki.model import jsontext

MAIN_MODULE = "__main__"
COMMAND_KIND = "command"
PYTHON_KIND = "python"


class Lack(StrEnum):
    """What a worker lacks to execute a job."""

    KIND = "kind"
    """It has no handler for jobs of this kind: a plug-in is not installed there."""

    PROGRAM = "program"
    """The function is in the `__main__` of another program."""

    MODULE = "module"
    """The module cannot be imported there."""

    FUNCTION = "function"
    """The module is there, but the function could not be loaded from it."""


class Needs(NamedTuple):
    """What a worker must have to execute a job: the kind of handler, and for a Python job its function, by the
    top-level package that is imported for it, or else by the program whose `__main__` has it."""

    kind: str
    function: str | None = None
    package: str | None = None
    program: str | None = None


def needs_of(kind: str, options: Mapping[str, Any]) -> Needs:
    if kind != PYTHON_KIND:
        return Needs(kind)
    function = str(options.get("function", ""))
    package = function.partition(":")[0].partition(".")[0]
    program = options.get("program") if package == MAIN_MODULE else None
    return Needs(kind, function, package, program)


@dataclass(frozen=True, kw_only=True)
class Abilities:
    """What a worker can execute. Of the packages only those that jobs name are listed; `missing` are functions that
    could not be loaded although their package is there."""

    kinds: frozenset[str]
    packages: frozenset[str] = frozenset()
    program: str | None = None
    missing: frozenset[str] = frozenset()

    def lack(self, needs: Needs) -> Lack | None:
        """What keeps this worker from executing a job with these needs; None if nothing does."""
        if needs.kind not in self.kinds:
            return Lack.KIND
        if needs.package == MAIN_MODULE:
            is_ours = self.program is not None and needs.program == self.program
            lack = None if is_ours else Lack.PROGRAM
        else:
            lack = None if needs.package in (None, *self.packages) else Lack.MODULE
        return lack or (Lack.FUNCTION if needs.function in self.missing else None)

    def as_dict(self) -> dict[str, Any]:
        return {
            "kinds": sorted(self.kinds),
            "packages": sorted(self.packages),
            "program": self.program,
            "missing": sorted(self.missing),
        }

    def as_text(self) -> str:
        """As it is stored."""
        return jsontext.encode(self.as_dict())

    @staticmethod
    def from_text(text: str | None) -> "Abilities | None":
        """The inverse of `as_text`. None: the worker has not registered any, and may have every run."""
        return None if text is None else _parsed(text)


@lru_cache(maxsize=1024)
def _parsed(text: str) -> Abilities:
    """A leader reads the same few texts in every round."""
    stored = jsontext.decode(text)
    return Abilities(
        kinds=frozenset(stored["kinds"]),
        packages=frozenset(stored["packages"]),
        program=stored["program"],
        missing=frozenset(stored["missing"]),
    )
