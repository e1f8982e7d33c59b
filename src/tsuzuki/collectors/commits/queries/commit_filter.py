"""Which commits are meant: of some projects and branches, within some days, without some paths."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import date, timedelta

from sqlalchemy import ColumnElement

from tsuzuki.collectors.commits.tables import commits


@dataclass(frozen=True, kw_only=True)
class CommitFilter:
    """What is None does not matter. Both days are days of UTC, and both are included."""

    project_ids: Sequence[int] | None = None
    branches: Sequence[str] | None = None
    since: date | None = None
    until: date | None = None
    excluded_path_ids: Collection[int] = ()
    """What was changed in these paths is not counted; a commit that changed nothing else is left out."""

    @property
    def is_of_whole_months(self) -> bool:
        starts = self.since is None or self.since.day == 1
        after = _day_after(self.until)
        return starts and (after is None or after.day == 1)

    def is_of_project(self, project_id: int) -> bool:
        return self.project_ids is None or project_id in self.project_ids

    def of_commits(self) -> list[ColumnElement[bool]]:
        """The conditions on `commits`."""
        conditions: list[ColumnElement[bool]] = []
        if self.project_ids is not None:
            conditions.append(commits.c.project_id.in_(self.project_ids))
        if self.branches is not None:
            conditions.append(commits.c.branch_name.in_(self.branches))
        if self.since is not None:
            conditions.append(commits.c.committed_date_utc >= self.since.isoformat())
        if (after := _day_after(self.until)) is not None:
            conditions.append(commits.c.committed_date_utc < after.isoformat())
        return conditions


EVERYTHING = CommitFilter()


def _day_after(day: date | None) -> date | None:
    return None if day is None or day == date.max else day + timedelta(days=1)
