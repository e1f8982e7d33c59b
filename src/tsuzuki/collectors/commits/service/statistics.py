"""What statistics answer, and in which order."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tsuzuki.collectors.commits.grouping import SUMS, Dimension
from tsuzuki.collectors.commits.people.identity import NO_TEAM
from tsuzuki.collectors.commits.service.report import LeftOut
from tsuzuki.model.errors import UsageError
from tsuzuki.model.suggestion import did_you_mean

__all__ = ["NO_TEAM", "Dimension", "LeftOut", "Statistics", "StatisticsSort", "sort_of"]


@dataclass(frozen=True, kw_only=True)
class Statistics:
    """`total` is that of every commit that was asked for, each counted once, those without a row of their own too."""

    rows: list[dict[str, Any]]
    total: dict[str, int]
    row_count: int
    """How many rows there are; fewer are shown if only the top was asked for."""
    left_out: LeftOut


@dataclass(frozen=True)
class StatisticsSort:
    """The field of a row to sort by. Equal rows stay in the order of the dimensions."""

    key: str
    descending: bool

    def sorted(self, rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        field = "author_name" if self.key == Dimension.AUTHOR else self.key
        return sorted(rows, key=lambda row: _comparable(row[field]), reverse=self.descending)


def sort_of(text: str, by: Sequence[Dimension]) -> StatisticsSort:
    """Read `KEY[:asc|desc]`. Numbers are sorted from the largest down unless it is said."""
    key, _, direction = text.strip().lower().partition(":")
    known = [*(dimension.value for dimension in by), *SUMS]
    if key not in known:
        raise UsageError(
            f"--sort accepts {', '.join(known)}, not {key!r}",
            code="sort_unknown",
            hint=f"{did_you_mean(key, known)}For example: --sort commits:desc",
        )
    if direction not in ("", "asc", "desc") or text.strip().endswith(":"):
        raise UsageError(
            f"--sort accepts asc or desc after the colon, not {direction!r}",
            code="sort_unknown",
            hint=f"For example: --sort {key}:desc",
        )
    return StatisticsSort(key, direction == "desc" if direction else key in SUMS)


def _comparable(value: Any) -> Any:
    return value.casefold() if isinstance(value, str) else value
