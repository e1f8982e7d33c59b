"""What GitLab says about a project, a branch, a commit: the JSON of its REST API, version 4."""

import time
from typing import Any
from urllib.parse import quote

from .projects import GitLabProject
from .repository import Branch, GitCommit, Repository

LONG_AGO = "2020-01-01T00:00:00.000Z"
"""A repository does not know when its project was made."""


def simple_project(project: GitLabProject, base_url: str) -> dict[str, Any]:
    """What a list with `simple=true` holds of a project."""
    web_url = f"{base_url}/{project.path}"
    return {
        "id": project.number,
        "description": None,
        "name": project.name,
        "name_with_namespace": project.path.replace("/", " / "),
        "path": project.name,
        "path_with_namespace": project.path,
        "created_at": LONG_AGO,
        "default_branch": project.repository.default_branch(),
        "tag_list": [],
        "topics": [],
        "ssh_url_to_repo": f"ssh://git@localhost/{project.path}.git",
        "http_url_to_repo": f"{web_url}.git",
        "web_url": web_url,
        "readme_url": None,
        "forks_count": 0,
        "avatar_url": None,
        "star_count": 0,
        "last_activity_at": LONG_AGO,
        "visibility": "private",
        "namespace": _namespace(project, base_url),
    }


def full_project(project: GitLabProject, base_url: str) -> dict[str, Any]:
    return {
        **simple_project(project, base_url),
        "empty_repo": project.repository.is_empty(),
        "archived": project.archived,
        "repository_access_level": "enabled",
        "permissions": {"project_access": {"access_level": 20}, "group_access": None},
    }


def _namespace(project: GitLabProject, base_url: str) -> dict[str, Any]:
    name = project.namespace.rpartition("/")[2]
    return {
        "id": 1,
        "name": name,
        "path": name,
        "kind": "group",
        "full_path": project.namespace,
        "parent_id": None,
        "avatar_url": None,
        "web_url": f"{base_url}/groups/{project.namespace}",
    }


def branch(found: Branch, head: GitCommit, project: GitLabProject, base_url: str) -> dict[str, Any]:
    return {
        "name": found.name,
        "commit": commit(head, project, base_url),
        "merged": False,
        "protected": found.is_default,
        "developers_can_push": False,
        "developers_can_merge": False,
        "can_push": False,
        "default": found.is_default,
        "web_url": f"{base_url}/{project.path}/-/tree/{quote(found.name)}",
    }


def commit(found: GitCommit, project: GitLabProject, base_url: str) -> dict[str, Any]:
    """With `stats` if they were counted."""
    entity: dict[str, Any] = {
        "id": found.sha,
        "short_id": found.sha[:8],
        "created_at": moment(found.committed_at),
        "parent_ids": found.parents,
        "title": found.title,
        "message": found.message,
        "author_name": found.author_name,
        "author_email": found.author_email,
        "authored_date": moment(found.authored_at),
        "committer_name": found.committer_name,
        "committer_email": found.committer_email,
        "committed_date": moment(found.committed_at),
        "trailers": {},
        "extended_trailers": {},
        "web_url": f"{base_url}/{project.path}/-/commit/{found.sha}",
    }
    if found.additions is not None and found.deletions is not None:
        entity["stats"] = {
            "additions": found.additions,
            "deletions": found.deletions,
            "total": found.additions + found.deletions,
        }
    return entity


def moment(raw: str) -> str:
    """Git's raw time, `1304443458 +0900`, as GitLab writes it: milliseconds, and an offset even for UTC.

    One that git cannot read is the beginning of 1970, as in `git log`; an offset may have any size."""
    seconds, _, zone = raw.partition(" ")
    try:
        offset = int(zone or "0")
        minutes = abs(offset) // 100 * 60 + abs(offset) % 100
        there = time.gmtime(int(seconds) + (minutes if offset >= 0 else -minutes) * 60)
    except (ValueError, OverflowError, OSError):
        there, offset = time.gmtime(0), 0
    date = f"{there.tm_year:04d}-{there.tm_mon:02d}-{there.tm_mday:02d}"
    clock = f"{there.tm_hour:02d}:{there.tm_min:02d}:{there.tm_sec:02d}.000"
    sign = "-" if offset < 0 else "+"
    return f"{date}T{clock}{sign}{abs(offset) // 100:02d}:{abs(offset) % 100:02d}"


def comparison(
    repository: Repository,
    project: GitLabProject,
    base_url: str,
    *,
    start: str,
    end: str,
    shas: list[str],
) -> dict[str, Any]:
    """The commits oldest first; the texts of the diffs are left out, as beyond a size GitLab does."""
    commits = [commit(c, project, base_url) for c in repository.commits(shas[::-1], stats=False)]
    return {
        "commit": commits[-1] if commits else None,
        "commits": commits,
        "diffs": [] if start == end else _diffs(repository.changed_paths(start, end)),
        "compare_timeout": False,
        "compare_same_ref": start == end,
        "web_url": f"{base_url}/{project.path}/-/compare/{start}...{end}",
    }


def _diffs(raw: bytes) -> list[dict[str, Any]]:
    cells = iter(raw.decode(errors="replace").split("\0"))
    diffs = []
    for head in cells:
        if not head:
            break
        old_mode, new_mode, _, _, change = head.removeprefix(":").split(" ")
        old_path = next(cells)
        new_path = next(cells) if change[0] in "RC" else old_path
        diffs.append(
            {
                "diff": "",
                "collapsed": True,
                "too_large": False,
                "new_path": new_path,
                "old_path": old_path,
                "a_mode": old_mode,
                "b_mode": new_mode,
                "new_file": change[0] == "A",
                "renamed_file": change[0] == "R",
                "deleted_file": change[0] == "D",
                "generated_file": None,
            }
        )
    return diffs
