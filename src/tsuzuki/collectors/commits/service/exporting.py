"""Commits for export, with what a report knows of them: parents, person, teams."""

from collections.abc import Iterator
from typing import Any

from tsuzuki.collectors.commits.people.identity import NO_TEAM
from tsuzuki.collectors.commits.queries import commit_groups, statistics
from tsuzuki.collectors.commits.queries.commit_filter import CommitFilter
from tsuzuki.collectors.commits.queries.statistics import MERGE_STATES
from tsuzuki.collectors.commits.report_tables import MergeState
from tsuzuki.collectors.commits.service.report import Reporter, Rules
from tsuzuki.store.sql.database import Connection


def exported_rows(
    connection: Connection, wanted: CommitFilter, rules: Rules, reporter: Reporter
) -> Iterator[dict[str, Any]]:
    """A commit once for each branch that has it. `is_merge` and `parents` are None while the parents are
    not known."""
    ids = {author[1:]: author.author_id for author in reporter.authors.values()}
    asked = reporter.asked(wanted, rules)
    names = reporter.names(statistics.author_counts(connection, wanted))
    states = MERGE_STATES[rules.merges]
    for row in commit_groups.exported(connection, wanted):
        author_id = ids[row["project_id"], row["author_email"], row["author_name"]]
        state = _state(row.pop("parent_count"))
        if author_id not in asked or state not in states or reporter.is_left_out(author_id, rules):
            continue
        person = reporter.persons[author_id]
        parents = row.pop("parents")
        row["additions"] -= int(row.pop("excluded_additions", 0))
        row["deletions"] -= int(row.pop("excluded_deletions", 0))
        yield {
            **row,
            "is_merge": None if state is MergeState.UNKNOWN else state is MergeState.YES,
            "parents": parents,
            "person": names[person.key],
            "teams": [team for team in person.teams if team != NO_TEAM],
        }


def _state(parent_count: int | None) -> MergeState:
    if parent_count is None:
        return MergeState.UNKNOWN
    return MergeState.YES if parent_count > 1 else MergeState.NO
