"""Parts of the benchmark that run in their own processes; each prints its figures as JSON."""

import json
import random
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

from bench.commits import history
from bench.commits.measure import (
    NEW_COMMITS,
    ROWS,
    TARGETS,
    folder,
    git_log,
    remove,
    rss_mb,
    timed,
)
from tsuzuki.collectors.commits.grouping import Dimension
from tsuzuki.collectors.commits.queries import projects, rollup, targets
from tsuzuki.collectors.commits.queries.pages import store_page
from tsuzuki.collectors.commits.queries.projects import NewProject
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.sandbox.gitlab import TOKEN, gitlab
from tsuzuki.collectors.commits.sources.source import Commit
from tsuzuki.collectors.commits.tables import ProjectKind
from tsuzuki.model.clock import SystemClock
from tsuzuki.sandbox.server import StandIn
from tsuzuki.wiring.application import Application, opened
from tsuzuki.wiring.library import Connection, opened_for_library

PAGE = 10_000
POLL_SECONDS = 0.05
PROJECTS = 20
ROUNDS = 3
MERGE_EVERY = 10


@contextmanager
def working(**environ: str) -> Iterator[Application]:
    """A running engine in a new workspace."""
    place = folder()
    (place / "tsuzuki.yaml").write_text("jobs: {}\n", encoding="utf-8")
    with opened(cwd=place, environ=environ) as application:
        application.local_engine.start(capacity=1)
        try:
            yield application
        finally:
            application.local_engine.stop(at_once=True)
    remove(place)


def collect(application: Application) -> float:
    """Seconds from the request for a collection to its end."""
    began = time.perf_counter()
    collections = application.service("commits").collections
    collection_id = collections.start().collection_id
    while collections.progress(collection_id).summary.completed_at_utc is None:
        time.sleep(POLL_SECONDS)
    took = time.perf_counter() - began
    summary = collections.show(collection_id).summary
    assert summary.failed_count == 0, collections.show(collection_id)
    return took


def first_and_next(repository: str) -> dict[str, Any]:
    """A first collection, then one of some new commits."""
    place = folder()
    copy = place / "copy.git"
    shutil.copytree(repository, copy)
    with working() as application:
        application.service("commits").commits.add_target(str(copy), "main", base=Path())
        first = collect(application)
        rss = rss_mb()
        history.append(copy, NEW_COMMITS)
        git_alone = timed(lambda: git_log(copy, f"main~{NEW_COMMITS}..main"))
        following = collect(application)
    remove(place)
    return {
        "first_seconds": first,
        "rss_mb": rss,
        "incremental_git": git_alone,
        "incremental_seconds": following,
    }


def unchanged() -> dict[str, Any]:
    """A pass over many targets of a GitLab that have not changed."""
    place = folder()
    history.make(place / "group" / "one.git", 20)
    for number in range(1, TARGETS):
        shutil.copytree(place / "group" / "one.git", place / "group" / f"copy{number}.git")
    with StandIn(gitlab(place)) as server:
        environ = {
            "TSUZUKI_COMMITS_GITLAB_URL": server.url,
            "TSUZUKI_COMMITS_GITLAB_TOKEN": TOKEN,
        }
        with working(**environ) as application:
            for change in application.service("commits").commits.sync_projects():
                application.service("commits").commits.add_target(
                    change.project.path, "main", base=Path()
                )
            collect(application)
            server.forget_requests()
            took = collect(application)
            asked = server.count()
    remove(place)
    return {
        "unchanged_targets": TARGETS,
        "unchanged_seconds": round(took, 2),
        "unchanged_requests": asked,
    }


MEASURED = (
    *((dimension.value,) for dimension in Dimension),
    ("month", "author"),
    ("month", "author", "project"),
)
PEOPLE = 200


def million() -> dict[str, Any]:
    """Statistics over a table of a million commits, with people, teams, merges and bots as by default."""
    place = folder()
    (place / "tsuzuki.yaml").write_text(
        "commits: {people: people.yaml}\njobs: {}\n", encoding="utf-8"
    )
    (place / "people.yaml").write_text(_people(), encoding="utf-8")
    library = opened_for_library(
        config_file=None, database_url=None, cwd=place, environ={}, actor="bench"
    )
    with library as resources:
        reports = resources.application.service("commits").reports
        stored = timed(lambda: fill(resources.transaction))
        figures = {
            f"stats_by_{'_'.join(by)}_seconds": round(
                min(
                    timed(lambda by=by: reports.statistics([Dimension(d) for d in by]))
                    for _ in range(ROUNDS)
                ),
                3,
            )
            for by in MEASURED
        }
        with resources.transaction() as connection:
            for project_id in range(1, PROJECTS + 1):
                rollup.forget(connection, project_id)
        rebuilt = timed(lambda: reports.statistics([Dimension.MONTH]))
    remove(place)
    return {
        "rows": ROWS,
        "rows_stored_seconds": round(stored, 1),
        **figures,
        "rollup_rebuilt_seconds": round(rebuilt, 1),
    }


def _people() -> str:
    people = [f"  Person {n}: [author{n}@example.org]" for n in range(PEOPLE)]
    teams = [
        f"  Team {t}: [{', '.join(f'Person {n}' for n in range(t * 10, t * 10 + 15))}]"
        for t in range(PEOPLE // 10 - 1)
    ]
    return "\n".join(["people:", *people, "teams:", *teams, ""])


def fill(transaction: Callable[[], AbstractContextManager[Connection]]) -> None:
    chance = random.Random(3)
    with transaction() as connection:
        for number in range(PROJECTS):
            new = NewProject(
                kind=ProjectKind.GIT,
                location=f"/{number}",
                remote_id=None,
                path=f"group/p{number}",
                name=f"p{number}",
                url="",
                default_branch="main",
            )
            project = projects.record(connection, new, now=SystemClock().now())
            targets.follow(connection, Target(project.project.project_id, "main"))
    for start in range(0, ROWS, PAGE):
        target = Target(start // PAGE % PROJECTS + 1, "main")
        page = [_commit(chance, target, number) for number in range(start, start + PAGE)]
        with transaction() as connection:
            store_page(connection, target, page)


def _commit(chance: random.Random, target: Target, number: int) -> Commit:
    author = target.project_id * 10 + chance.randrange(30)
    year, month, day = (
        chance.randrange(2010, 2026),
        chance.randrange(1, 13),
        chance.randrange(1, 29),
    )
    name = f"Author {author}" if author % 50 else "renovate[bot]"
    return Commit(
        f"{number:040x}",
        name,
        f"author{author}@example.org",
        f"{year}-{month:02}-{day:02}T12:00:00Z",
        author,
        number % 90,
        "1 2" if number % MERGE_EVERY == 0 else "1",
    )


def main() -> None:
    match sys.argv[1:]:
        case ["collect", repository]:
            figures = first_and_next(repository)
        case ["unchanged"]:
            figures = unchanged()
        case ["million"]:
            figures = million()
        case other:
            raise SystemExit(f"no such part: {other}")
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
