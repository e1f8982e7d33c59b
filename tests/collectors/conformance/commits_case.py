"""Commits, from a stand-in of GitLab and from a repository on this machine."""

import json
import os
from pathlib import Path

import pytest
from pydantic import BaseModel

from support.git_histories import straight
from tsuzuki.collectors.commits.options import CommitsSection
from tsuzuki.collectors.commits.plugin import COLLECTOR
from tsuzuki.collectors.commits.queries import projects, targets
from tsuzuki.collectors.commits.queries.projects import NewProject
from tsuzuki.collectors.commits.queries.targets import Target
from tsuzuki.collectors.commits.sandbox.gitlab import gitlab
from tsuzuki.collectors.commits.sources import gitlab as source_gitlab
from tsuzuki.collectors.commits.tables import ProjectKind
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn
from tsuzuki.store.sql.database import Database

from .case import Case

TOKEN = "glpat-of-the-conforming"
PASSWORD = "pa55-in-a-remote-url"
PAGE_SIZE = 5
COMMIT_COUNT = 22
AUTHOR = "@example.org"


class GitCase(Case):
    """A repository on this machine."""

    collector = COLLECTOR
    pages = COMMIT_COUNT // PAGE_SIZE
    options = {"projects": []}  # noqa: RUF012 -- never changed
    volatile = frozenset(
        {
            "projects.added_at_utc",
            "projects.synced_at_utc",
            "bulk_collection_runs.run_id",
            "bulk_collection_runs.started_at_utc",
            "bulk_collection_runs.completed_at_utc",
            "bulk_collection_results.run_id",
            "bulk_collection_results.processed_at_utc",
            "tsuzuki_bulk_collection_notes.run_id",
            "tsuzuki_bulk_collection_owners.run_id",
            "tsuzuki_bulk_collection_owners.job_run_id",
            "tsuzuki_commit_targets.collected_at_utc",
            "tsuzuki_commit_targets.range_run_id",
            # A transaction that was rolled back has used up some numbers on PostgreSQL.
            "tsuzuki_commit_paths.path_id",
            "tsuzuki_commit_path_counts.path_id",
            "tsuzuki_commit_authors.author_id",
            "tsuzuki_commit_days.author_id",
            "tsuzuki_commit_months.author_id",
            "tsuzuki_commit_months.rollup_id",
            "tsuzuki_commit_rollups.rollup_id",
        }
    )
    secrets = (TOKEN, PASSWORD)
    private = (AUTHOR,)

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        self._repository = folder / "group" / "conforming.git"
        straight(self._repository, COMMIT_COUNT)

    def section(self) -> BaseModel:
        return CommitsSection.model_validate({"page_commits": PAGE_SIZE, "tries": 2})

    def prepare(self, database: Database) -> None:
        with database.write() as connection:
            change = projects.record(connection, self._project(), now=database.clock.now())
            targets.follow(connection, Target(change.project.project_id, "main"))

    def fail_with_secrets(self) -> None:
        url = f"https://user:{PASSWORD}@host/group.git"
        said = f"fatal: unable to access {url}: {TOKEN} of author{AUTHOR}"
        self._replace_git(f"echo '{said}' >&2; exit 128")

    def hang(self) -> None:
        self._replace_git(f"touch {self._hanging}; exec sleep 600")

    def is_hanging(self) -> bool:
        return self._hanging.exists()

    @property
    def _hanging(self) -> Path:
        return self.workspace / "hanging"

    def _replace_git(self, script: str) -> None:
        """Put another program where git is looked for."""
        program = self.workspace / "bin" / "git"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        self.monkeypatch.setenv("PATH", f"{program.parent}{os.pathsep}{os.environ['PATH']}")

    def _project(self) -> NewProject:
        return _new(ProjectKind.GIT, str(self._repository), None)


class GitLabCase(GitCase):
    """A project of a GitLab."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        monkeypatch.setattr(source_gitlab, "PAGE_SIZE", PAGE_SIZE)
        self._api = gitlab(folder, token=TOKEN)
        self._server = StandIn(self._api)
        self._server.start()

    def section(self) -> BaseModel:
        server = {"url": self._server.url, "token": TOKEN}
        return CommitsSection.model_validate({"gitlab": server, "tries": 2})

    def fail_with_secrets(self) -> None:
        words = {"message": f"{TOKEN} of author{AUTHOR}"}
        self._server.faults.add(StandInFault(status=403, body=json.dumps(words), times=None))

    def hang(self) -> None:
        self._server.faults.add(StandInFault(kind=StandInFaultKind.HANG))

    def is_hanging(self) -> bool:
        return self._server.faults.held > 0

    def release(self) -> None:
        self._server.faults.release()

    def close(self) -> None:
        self._server.stop()

    def _project(self) -> NewProject:
        project = self._api.projects.find("group/conforming")
        assert project is not None
        return _new(ProjectKind.GITLAB, self._server.url, project.number)


def _new(kind: ProjectKind, location: str, remote_id: int | None) -> NewProject:
    return NewProject(
        kind=kind,
        location=location,
        remote_id=remote_id,
        path="group/conforming",
        name="conforming",
        url="https://example.org/conforming",
        default_branch="main",
    )
