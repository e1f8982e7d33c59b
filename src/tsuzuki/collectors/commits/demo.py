"""The commits in `tsuzuki demo`: a GitLab with two projects, and the repositories in the demo's folder."""

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tsuzuki.cli.demo.part import (
    DemoContext,
    DemoPart,
    DemoServer,
    RunningDemo,
    make_once,
    start_job,
)
from tsuzuki.collectors.commits.sandbox.gitlab import gitlab
from tsuzuki.collectors.commits.sandbox.gitlab.demo import make_demo
from tsuzuki.sandbox.server import StandIn

if TYPE_CHECKING:
    from tsuzuki.collectors.commits.service import CommitsService

REPOSITORIES = "gitlab"
PROJECTS = ("demo/atlas", "demo/harbour")
FOLLOWED = Path(".tsuzuki") / "followed"
"""Written once all projects are followed: a first start may be interrupted."""

JOB_NAME = "commits"
SECTION = """\
commits:
  gitlab:
    url: http://127.0.0.1:{gitlab}
    token: ${{SANDBOX_GITLAB_TOKEN:-sandbox-token}}
"""
JOB = (
    "  commits:\n    description: Collect new commits of every project\n    type: "
    "commits\n    schedule: {{every: 5m}}\n"
)


def _prepare(context: DemoContext) -> None:
    make = partial(make_demo, end=int(context.since.timestamp()))
    make_once(context.folder / REPOSITORIES, make)


def _servers(context: DemoContext) -> tuple[DemoServer, ...]:
    application = gitlab(context.folder / REPOSITORIES, clock=context.clock)
    return (
        DemoServer(
            name="gitlab", usual_port=8421, make=lambda port: StandIn(application, port=port)
        ),
    )


def _follow_projects(demo: RunningDemo) -> None:
    """Follow the projects at the first start only, so that a target removed later stays removed. Then start the job,
    which collects their commits."""
    done = demo.folder / FOLLOWED
    if not done.exists():
        service: CommitsService = demo.application.service("commits")
        service.commits.sync_projects()
        local = [str(found.parent) for found in sorted(demo.folder.glob("*/.git"))]
        for project in (*local, *PROJECTS):
            if demo.stopping.is_set():
                return
            service.commits.add_target(project, None, base=demo.folder)
        done.touch()
    start_job(demo.application, JOB_NAME)


DEMO = DemoPart(
    section=SECTION,
    job=JOB,
    programs=("git",),
    prepare=_prepare,
    servers=_servers,
    after_start=_follow_projects,
    look_at={"/commits": "who committed when"},
)
