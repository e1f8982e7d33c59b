"""Storing a page: its commits, each once per branch, and the totals, each commit once per project.

Written with the driver's own statements for many rows: here a history of a million commits goes through.
"""

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import Connection, select

from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.source import Commit
from tsuzuki.collectors.commits.tables import projects

MONTH_LENGTH = len("2024-02")

_KNOWN_SQLITE = """
SELECT c.branch_name, c.sha FROM json_each(?1) AS wanted CROSS JOIN commits c ON c.sha = wanted.value
WHERE c.project_id = ?2 AND c.branch_name IN
  (SELECT branch_name FROM commit_targets WHERE project_id = ?2)
"""
# One array, not a join: before PostgreSQL has counted a new table it believes a branch to be short, and
# would walk through all of it for each commit of the page. So it does that once at worst, and only with
# the array at hand does it look into it by hashing: a plan kept for any array would not.
_PLAN_ANEW = "SET LOCAL plan_cache_mode = force_custom_plan"
_KNOWN_POSTGRES = """
SELECT c.branch_name, c.sha FROM commits c
WHERE c.project_id = %(project)s AND c.sha = ANY (%(shas)s::text[]) AND c.branch_name IN
  (SELECT branch_name FROM commit_targets WHERE project_id = %(project)s)
"""

_COMMIT_COLUMNS = (
    "project_id, branch_name, sha, author_name, author_email, committed_date_utc,"
    " additions, deletions"
)
_INSERT_SQLITE = f"INSERT INTO commits ({_COMMIT_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_INSERT_POSTGRES = f"""
INSERT INTO commits ({_COMMIT_COLUMNS})
SELECT %s::bigint, %s::text, page.* FROM
  unnest(%s::text[], %s::text[], %s::text[], %s::text[], %s::int[], %s::int[]) AS page
"""

_TOTAL_COLUMNS = "project_id, month, author_email, author_name, commits, additions, deletions"
_ADD_UP = """
ON CONFLICT (project_id, month, author_email, author_name) DO UPDATE SET
  commits = commit_totals.commits + excluded.commits,
  additions = commit_totals.additions + excluded.additions,
  deletions = commit_totals.deletions + excluded.deletions
"""
_TOTAL_SQLITE = (
    f"INSERT INTO commit_totals ({_TOTAL_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?) {_ADD_UP}"
)
_TOTAL_POSTGRES = f"""
INSERT INTO commit_totals ({_TOTAL_COLUMNS})
SELECT %s::bigint, page.* FROM
  unnest(%s::text[], %s::text[], %s::text[], %s::bigint[], %s::bigint[], %s::bigint[]) AS page
{_ADD_UP}
"""


def store_page(connection: Connection, target: Target, page: Sequence[Commit]) -> int:
    """Store what is new in a page; answers how many commits that were."""
    if not page:
        return 0
    hold_project(connection, target.project_id)
    here, anywhere = _known(connection, target, page)
    fresh = [commit for commit in page if commit.sha not in here] if here else page
    unique = {commit.sha: commit for commit in fresh}
    if len(unique) != len(fresh):
        fresh = list(unique.values())
    if not fresh:
        return 0
    _insert(connection, target, fresh)
    uncounted = [commit for commit in fresh if commit.sha not in anywhere] if anywhere else fresh
    _add_up(connection, target.project_id, uncounted)
    return len(fresh)


def hold_project(connection: Connection, project_id: int) -> None:
    """One page of a project at a time, or two branches stored at once would both count a commit
    that is on both. SQLite has one writer anyway."""
    connection.execute(
        select(projects.c.project_id)
        .where(projects.c.project_id == project_id)
        .with_for_update(key_share=True)
    )


def _known(
    connection: Connection, target: Target, page: Sequence[Commit]
) -> tuple[set[str], set[str]]:
    """Which commits of the page are stored already: for this branch, and for any of its project."""
    shas = [commit.sha for commit in page]
    if connection.dialect.name == "sqlite":
        rows = connection.exec_driver_sql(_KNOWN_SQLITE, (json.dumps(shas), target.project_id))
    else:
        connection.exec_driver_sql(_PLAN_ANEW)
        rows = connection.exec_driver_sql(
            _KNOWN_POSTGRES, {"shas": shas, "project": target.project_id}
        )
    found = rows.all()
    here = {sha for branch, sha in found if branch == target.branch}
    return here, {sha for _branch, sha in found}


def _insert(connection: Connection, target: Target, fresh: Sequence[Commit]) -> None:
    project_id, branch = target.project_id, target.branch
    if connection.dialect.name == "sqlite":
        rows = [(project_id, branch, *commit) for commit in fresh]
        connection.exec_driver_sql(_INSERT_SQLITE, rows)
    else:
        columns = [list(column) for column in zip(*fresh, strict=True)]
        connection.exec_driver_sql(_INSERT_POSTGRES, (project_id, branch, *columns))


def _add_up(connection: Connection, project_id: int, uncounted: Sequence[Commit]) -> None:
    totals: dict[tuple[str, str, str], list[int]] = {}
    for _sha, name, email, date, additions, deletions in uncounted:
        total = totals.get(key := (date[:MONTH_LENGTH], email, name))
        if total is None:
            totals[key] = [1, additions, deletions]
        else:
            total[0] += 1
            total[1] += additions
            total[2] += deletions
    if not totals:
        return
    # In one order everywhere: two transactions that add to the same rows never wait in a circle.
    rows: list[tuple[Any, ...]] = [(*key, *totals[key]) for key in sorted(totals)]
    if connection.dialect.name == "sqlite":
        connection.exec_driver_sql(_TOTAL_SQLITE, [(project_id, *row) for row in rows])
    else:
        columns = [list(column) for column in zip(*rows, strict=True)]
        connection.exec_driver_sql(_TOTAL_POSTGRES, (project_id, *columns))
