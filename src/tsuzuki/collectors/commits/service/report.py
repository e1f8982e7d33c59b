"""A report: who did what, with people joined and with merges, bots and paths left out as it is asked.

All of that is applied here, to counts by author as written; nothing that is stored changes.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tsuzuki.collectors.commits import grouping
from tsuzuki.collectors.commits.grouping import (
    BY_AUTHOR,
    BY_DAY,
    BY_PERIOD,
    SUMS,
    Dimension,
    Labels,
    NameUse,
)
from tsuzuki.collectors.commits.people.identity import People, Person
from tsuzuki.collectors.commits.queries import commit_groups, projects, statistics
from tsuzuki.collectors.commits.queries.commit_filter import CommitFilter
from tsuzuki.collectors.commits.queries.commit_groups import CommitGroup
from tsuzuki.collectors.commits.queries.rollup import day_number, month_number
from tsuzuki.collectors.commits.queries.statistics import (
    MERGE_STATES,
    Author,
    AuthorChoice,
    AuthorCount,
    Merges,
    StatisticsGroup,
)
from tsuzuki.collectors.commits.report_tables import EACH_ONCE, MergeState
from tsuzuki.store.sql.database import Connection


@dataclass(frozen=True, kw_only=True)
class CommitRules:
    """What counts: merges, bots, and whose commits."""

    merges: Merges = Merges.EXCLUDE
    with_bots: bool = False
    is_asked: Callable[[Author, Person], bool] | None = None
    """Whose commits are asked for; None for everyone's. A bot that is asked for is not left out."""


@dataclass(frozen=True, kw_only=True)
class LeftOut:
    """How many of the commits that were asked for are not counted, and what is not known of those that are."""

    merges: int = 0
    bots: int = 0
    parents_unknown: int = 0
    """Counted, though they may be merges: their parents are not stored yet."""
    paths: int = 0
    """How many paths are left out."""
    paths_unknown: int = 0
    """Counted in full, because their paths are not known."""


@dataclass(frozen=True, kw_only=True)
class Report:
    rows: list[dict[str, Any]]
    total: dict[str, int]
    left_out: LeftOut


@dataclass(frozen=True, kw_only=True)
class _Scope:
    """Which counts of the rollup answer: those in which each commit counts once, and those by branch."""

    once: Sequence[int]
    branches: Mapping[int, str] | None = None
    """By rollup; None if no branch is spoken of."""


class Reporter:
    """Reports from one connection: who the authors are is found out once."""

    def __init__(self, connection: Connection, people: People) -> None:
        self._connection = connection
        self.authors = {author.author_id: author for author in statistics.authors(connection)}
        self.persons = {
            author_id: people.person_of(author.project_id, author.author_name, author.author_email)
            for author_id, author in self.authors.items()
        }

    def report(self, by: Sequence[Dimension], wanted: CommitFilter, rules: CommitRules) -> Report:
        """Counts for each value of the dimensions, in their order; without a dimension one row."""
        scope = self._scope(by, wanted)
        if scope is None:
            return self._from_commits(by, wanted, rules)
        asked = self.asked(wanted, rules)
        counts = [
            count
            for count in statistics.author_counts(self._connection, wanted, scope.once)
            if count.author_id in asked
        ]
        counted = self._counted(counts, rules)
        groups: Iterable[Sequence[int]]
        if {*by} & {*BY_PERIOD, Dimension.BRANCH}:
            groups = statistics.groups(
                self._connection,
                wanted,
                choice=self._choice(asked, rules),
                merges=rules.merges,
                by_day=bool(BY_DAY & {*by}),
                by_month=bool(BY_PERIOD & {*by}),
                by_author=bool(BY_AUTHOR & {*by}),
                rollup_ids=None if scope.branches is None else list(scope.branches),
            )
        else:
            groups = [StatisticsGroup(0, one.author_id, EACH_ONCE, *one[2:5]) for one in counted]
        branches = {EACH_ONCE: "", **(scope.branches or {})}
        return Report(
            rows=grouping.added_up(groups, by, self._labels(by, counted, branches)),
            total=_total(counted),
            left_out=self._left_out(counts, rules),
        )

    def excluded_paths(self, is_excluded: Callable[[str], bool]) -> list[int]:
        """The ids of the paths that are left out."""
        found = commit_groups.paths(self._connection)
        return [path_id for path_id, _project, path in found if is_excluded(path)]

    # --- whose commits --------------------------------------------------------------------------

    def asked(self, wanted: CommitFilter, rules: CommitRules) -> set[int]:
        """The authors whose commits are asked for."""
        return {
            author_id
            for author_id, author in self.authors.items()
            if wanted.is_of_project(author.project_id)
            and (rules.is_asked is None or rules.is_asked(author, self.persons[author_id]))
        }

    def is_left_out(self, author_id: int, rules: CommitRules) -> bool:
        """Whether it is a bot that was not asked for."""
        shown = rules.with_bots or rules.is_asked is not None
        return not shown and self.persons[author_id].is_bot

    def _choice(self, asked: set[int], rules: CommitRules) -> AuthorChoice | None:
        """The same for the database, by the shorter list."""
        chosen = {author for author in asked if not self.is_left_out(author, rules)}
        others = self.authors.keys() - chosen
        if not others:
            return None
        if len(others) < len(chosen):
            return AuthorChoice(ids=others, is_excluding=True)
        return AuthorChoice(ids=chosen, is_excluding=False)

    def _counted(self, counts: Iterable[AuthorCount], rules: CommitRules) -> list[AuthorCount]:
        states = MERGE_STATES[rules.merges]
        return [
            count
            for count in counts
            if count.merge_state in states and not self.is_left_out(count.author_id, rules)
        ]

    def _left_out(self, counts: Iterable[AuthorCount], rules: CommitRules) -> LeftOut:
        merges = bots = unknown = 0
        for count in counts:
            if rules.merges is Merges.EXCLUDE and count.merge_state == MergeState.YES:
                merges += count.commits
            elif self.is_left_out(count.author_id, rules):
                bots += count.commits
            elif count.merge_state == MergeState.UNKNOWN and rules.merges is not Merges.INCLUDE:
                unknown += count.commits
        return LeftOut(merges=merges, bots=bots, parents_unknown=unknown)

    # --- from where -----------------------------------------------------------------------------

    def _scope(self, by: Sequence[Dimension], wanted: CommitFilter) -> _Scope | None:
        """Which counts of the rollup answer; None if they cannot."""
        if wanted.excluded_path_ids:
            return None
        if wanted.branches is None and Dimension.BRANCH not in by:
            return _Scope(once=(EACH_ONCE,))
        if BY_DAY & {*by} or not wanted.is_of_whole_months:
            return None
        found = [
            rollup
            for rollup in statistics.rollups(self._connection)
            if wanted.is_of_project(rollup.project_id)
            and (wanted.branches is None or rollup.branch_name in wanted.branches)
        ]
        branches = {rollup.rollup_id: rollup.branch_name for rollup in found}
        if wanted.branches is None:
            return _Scope(once=(EACH_ONCE,), branches=branches)
        if len({rollup.project_id for rollup in found}) < len(found):
            return None  # a commit may be on several of them
        return _Scope(once=tuple(branches), branches=branches)

    def _from_commits(
        self, by: Sequence[Dimension], wanted: CommitFilter, rules: CommitRules
    ) -> Report:
        """The same from the commits themselves, which takes as long as there are many."""
        by_branch = Dimension.BRANCH in by
        found = self._commit_groups(wanted, rules, by_branch=by_branch, by_day=BY_DAY & {*by})
        once = found
        if by_branch:
            once = self._commit_groups(wanted, rules, by_branch=False, by_day=False)
        counts = [
            AuthorCount(author, g.merge_state, g.commits, g.additions, g.deletions, day)
            for author, day, g in once
        ]
        names = sorted({group.branch_name for _, _, group in found})
        numbers = {name: number for number, name in enumerate(names)}
        states = MERGE_STATES[rules.merges]
        groups = [
            StatisticsGroup(
                day, author, numbers[g.branch_name], g.commits, g.additions, g.deletions
            )
            for author, day, g in found
            if g.merge_state in states and not self.is_left_out(author, rules)
        ]
        counted = self._counted(counts, rules)
        labels = self._labels(by, counted, dict(enumerate(names)))
        unknown = sum(g.without_paths for author, _, g in once if g.merge_state in states)
        return Report(
            rows=grouping.added_up(groups, by, labels),
            total=_total(counted),
            left_out=replace(
                self._left_out(counts, rules),
                paths=len(wanted.excluded_path_ids),
                paths_unknown=unknown,
            ),
        )

    def _commit_groups(
        self, wanted: CommitFilter, rules: CommitRules, *, by_branch: bool, by_day: Any
    ) -> list[tuple[int, int, CommitGroup]]:
        """Groups of commits with their author and their day or month as a number."""
        ids = {author[1:]: author.author_id for author in self.authors.values()}
        asked = self.asked(wanted, rules)
        found = commit_groups.commit_groups(
            self._connection, wanted, by_branch=by_branch, by_day=bool(by_day)
        )
        numbered = [
            (ids[group[:3]], day_number(group.day) if by_day else month_number(group.day), group)
            for group in found
            if group[:3] in ids  # of a page that was stored after the authors were read: not yet
        ]
        return [one for one in numbered if one[0] in asked]

    # --- what it is called ----------------------------------------------------------------------

    def _labels(
        self, by: Sequence[Dimension], counted: Sequence[AuthorCount], branches: Mapping[int, str]
    ) -> Labels:
        paths = {p.project_id: p.path for p in projects.find(self._connection)}
        return Labels(
            people=self.persons,
            projects={
                author_id: (paths[author.project_id], author.project_id)
                for author_id, author in self.authors.items()
            },
            branches=branches,
            names=self.names(counted) if Dimension.AUTHOR in by else {},
        )

    def names(self, counted: Iterable[AuthorCount]) -> dict[str, str]:
        """The name to show of each person: the one that is given, else the one used most."""
        used: dict[str, dict[str, NameUse]] = {}
        given: dict[str, dict[str, NameUse]] = {}
        for count in counted:
            person = self.persons[count.author_id]
            name = person.name or self.authors[count.author_id].author_name
            of_person = (given if person.name else used).setdefault(person.key, {})
            before = of_person.get(name, NameUse(0, 0))
            of_person[name] = NameUse(
                before.commits + count.commits, max(before.newest, count.newest)
            )
        newest = self._newest({*grouping.tied(used)} - given.keys())
        return {**grouping.most_used(used, newest), **grouping.most_used(given, {})}

    def _newest(self, keys: set[str]) -> dict[tuple[str, str], int]:
        """The last day on which each of these people used each of their names."""
        if not keys:
            return {}
        ids = [author_id for author_id, person in self.persons.items() if person.key in keys]
        newest: dict[tuple[str, str], int] = {}
        for author_id, day in statistics.newest_days(self._connection, ids).items():
            key = (self.persons[author_id].key, self.authors[author_id].author_name)
            newest[key] = max(newest.get(key, 0), day)
        return newest


def _total(counted: Iterable[AuthorCount]) -> dict[str, int]:
    return grouping.total_of(dict(zip(SUMS, count[2:5], strict=True)) for count in counted)
