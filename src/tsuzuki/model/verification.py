"""Verification: stored rows are compared with their source, and every difference is counted and named.

A proof reads sources of any size, so a `Comparison` counts every fault and names the first `NAMED_MAX` only.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from tsuzuki.model.errors import TsuzukiError

NAMED_MAX = 20
SUBJECTS_MAX = 20
ERROR_NAMES_MAX = 5


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

    def lines(self) -> list[str]:
        """One line for each named fault, and one for the problem."""
        named = [f"{self.subject}: {one.kind}: {one.name}" for one in self.named]
        return [*named, *([f"{self.subject}: {self.problem}"] if self.problem else [])]

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


@dataclass(frozen=True, kw_only=True)
class PartResult:
    """What the verification of one part found, over all its subjects."""

    part: str
    subjects: int
    compared: int
    faulty: int
    """The number of subjects with a fault, or whose comparison is incomplete."""

    counts: Mapping[FaultKind, int]
    shown: tuple[Verified, ...] = ()
    """The first `SUBJECTS_MAX` faulty subjects."""

    notes: tuple[str, ...] = ()
    """What was left out on purpose, of the first `SUBJECTS_MAX` subjects."""

    problem: str | None = None
    """Why the part could not be verified to its end."""

    @property
    def faults(self) -> int:
        return sum(self.counts.values())

    @property
    def is_ok(self) -> bool:
        return not self.faulty and self.problem is None

    @property
    def headline(self) -> str:
        """The result in one line."""
        head = f"{self.part}: {self.compared:,} compared in {self.subjects:,} subjects"
        return f"{head}, {_count(self.faults)} in {self.faulty:,}" if self.faulty else head

    def as_dict(self) -> dict[str, Any]:
        """For machines (JSON), and for the result of a run."""
        return {
            "part": self.part,
            "ok": self.is_ok,
            "subjects": self.subjects,
            "compared": self.compared,
            "faults": self.faults,
            "counts": {kind.value: count for kind, count in self.counts.items()},
            "faulty": self.faulty,
            "shown": [one.as_dict() for one in self.shown],
            "notes": list(self.notes),
            "problem": self.problem,
        }

    def lines(self) -> list[str]:
        """One line for each named fault and each problem."""
        named = [line for one in self.shown for line in one.lines()]
        return [*named, *([self.problem] if self.problem else [])]


def part_result(part: str, verified: Iterable[Verified]) -> PartResult:
    """Read all subjects of a part. An error ends the part and is its problem."""
    subjects = compared = faulty = 0
    counts: dict[FaultKind, int] = {}
    shown: list[Verified] = []
    notes: list[str] = []
    problem = None
    try:
        for one in verified:
            subjects += 1
            compared += one.compared
            for kind, count in one.counts.items():
                counts[kind] = counts.get(kind, 0) + count
            if not one.is_ok:
                faulty += 1
                shown += [one] if len(shown) < SUBJECTS_MAX else []
            if one.note and len(notes) < SUBJECTS_MAX:
                notes.append(f"{one.subject}: {one.note}")
    except TsuzukiError as error:
        problem = error.message
    return PartResult(
        part=part,
        subjects=subjects,
        compared=compared,
        faulty=faulty,
        counts=counts,
        shown=tuple(shown),
        notes=tuple(notes),
        problem=problem,
    )


def failure_text(results: Sequence[PartResult]) -> str:
    """The error of a verification that failed: how much is wrong where, and the first few names."""
    wrong = [result for result in results if not result.is_ok]
    heads = [
        f"{result.part}: {_count(result.faults)} in {result.faulty} of {result.subjects}"
        if result.faulty
        else f"{result.part}: {result.problem}"
        for result in wrong
    ]
    lines = [line for result in wrong for line in result.lines()]
    more = len(lines) > ERROR_NAMES_MAX or sum(one.faults for one in wrong) > len(lines)
    return "\n".join(
        ["verification failed: " + "; ".join(heads), *lines[:ERROR_NAMES_MAX], *(["…"] * more)]
    )


def _count(faults: int) -> str:
    return f"{faults:,} {'fault' if faults == 1 else 'faults'}"
