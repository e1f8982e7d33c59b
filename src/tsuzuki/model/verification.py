"""Verification: stored rows are compared with their source, and every difference is counted and named.

A proof reads sources of any size, so a `Comparison` counts every fault and names the first `NAMED_MAX` only.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

NAMED_MAX = 20


class FaultKind(StrEnum):
    """How stored rows can differ from their source."""

    MISSING = "missing"
    """The source has it, and it is not stored."""

    REPEATED = "repeated"
    """It is stored, or was done, more than once."""

    CHANGED = "changed"
    """It is stored otherwise than the source has it."""

    UNKNOWN = "unknown"
    """It is stored, and the source does not have it."""


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One difference, named so that a person finds it."""

    kind: FaultKind
    name: str


@dataclass(frozen=True, kw_only=True)
class Verified:
    """What the comparison of one subject with its source found."""

    subject: str
    """What was compared: a branch, a search, an account, a tree, a job."""

    compared: int
    """The number of things compared."""

    counts: Mapping[FaultKind, int] = field(default_factory=dict)
    """The number of faults of each kind that was found."""

    named: tuple[Fault, ...] = ()
    """The first `NAMED_MAX` faults."""

    problem: str | None = None
    """Why the comparison is incomplete, such as a source that is unavailable. A proof that was not given counts as a
    failed one."""

    note: str | None = None
    """What the comparison left out on purpose, such as pages beyond the number of calls. The proof holds."""

    @property
    def faults(self) -> int:
        return sum(self.counts.values())

    @property
    def is_ok(self) -> bool:
        return not self.faults and self.problem is None

    def as_dict(self) -> dict[str, Any]:
        """For machines (JSON), and for the result of a run."""
        return {
            "subject": self.subject,
            "ok": self.is_ok,
            "compared": self.compared,
            "faults": self.faults,
            "counts": {kind.value: count for kind, count in self.counts.items()},
            "named": [{"kind": one.kind.value, "name": one.name} for one in self.named],
            "problem": self.problem,
            "note": self.note,
        }


class Comparison:
    """Collects the result for one subject: counts everything, names the first few faults."""

    def __init__(self, subject: str) -> None:
        self.compared = 0
        self._subject = subject
        self._counts: dict[FaultKind, int] = {}
        self._named: list[Fault] = []

    def add(self, kind: FaultKind, name: str, *, count: int = 1) -> None:
        """Add a fault, or with `count` that many of which only this one is named."""
        self._counts[kind] = self._counts.get(kind, 0) + count
        if len(self._named) < NAMED_MAX:
            self._named.append(Fault(kind=kind, name=name))

    def result(self, *, problem: str | None = None, note: str | None = None) -> Verified:
        return Verified(
            subject=self._subject,
            compared=self.compared,
            counts=dict(self._counts),
            named=tuple(self._named),
            problem=problem,
            note=note,
        )
