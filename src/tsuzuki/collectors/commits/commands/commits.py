"""`tsuzuki commits`: projects, followed branches and collections."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Group
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.terminal.confirmation import confirm, yes_option
from tsuzuki.cli.terminal.formatting import format_stored_time
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.cli.terminal.progress import waiting_told
from tsuzuki.collectors.commits.commands.chart import chart
from tsuzuki.collectors.commits.commands.collect import RESULTS, collect, retry, watch
from tsuzuki.collectors.commits.commands.completions import project_paths
from tsuzuki.collectors.commits.commands.service import commits_service
from tsuzuki.collectors.commits.commands.statistics import export, stats
from tsuzuki.collectors.commits.commands.targets import TARGETS, add_target

if TYPE_CHECKING:
    from tsuzuki.collectors.commits.service.commits import ProjectChange

PROJECTS = [
    Column("project_id", "ID", align="right"),
    Column("path", "PROJECT"),
    Column("kind"),
    Column("default_branch", "DEFAULT"),
    Column("commits", align="right"),
    Column("location"),
]
RUNS = [
    Column("collection_id", "COLLECTION", shrinks=True),
    Column("run_status", "STATUS"),
    Column("total_targets", "TARGETS", align="right"),
    Column("success_count", "SUCCESS", align="right"),
    Column("failed_count", "FAILED", align="right"),
    Column("pending_count", "PENDING", align="right"),
    Column("started_at_utc", "STARTED", format=format_stored_time),
    Column("completed_at_utc", "COMPLETED", format=format_stored_time),
]
SYNCED = [
    Column("project_id", "ID", align="right"),
    Column("path", "PROJECT"),
    Column("change"),
]


@click.group(cls=Group)
def commits() -> None:
    """Collect commits from git and GitLab, and analyze them.

    \b
    tsuzuki commits add-target ~/src/django
    tsuzuki commits collect
    tsuzuki commits stats --by month,author
    """


@commits.group("projects")
def projects() -> None:
    """Manage projects: GitLab projects and your own repositories.

    \b
    tsuzuki commits projects sync
    """


@projects.command()
@click.pass_obj
def sync(invocation: Invocation) -> None:
    """Sync the projects of the configured GitLab. No project is ever removed.

    \b
    tsuzuki commits projects sync
    """
    with open_application(invocation) as application, waiting_told(invocation, "GitLab"):
        changes = commits_service(application).commits.sync_projects()
    told = [_change(change) for change in changes]
    emit(invocation, told, columns=SYNCED, empty="No projects are visible on the server.")


@projects.command("ls")
@click.pass_obj
def list_projects(invocation: Invocation) -> None:
    """List all projects.

    \b
    tsuzuki commits projects ls
    """
    with open_application(invocation) as application:
        found = commits_service(application).commits.projects()
    rows = [{**asdict(view.project), "commits": view.commits} for view in found]
    emit(
        invocation,
        rows,
        columns=PROJECTS,
        empty="no projects yet; add one with: tsuzuki commits projects add .",
    )


@projects.command("add")
@click.argument("location", metavar="PATH|URL")
@click.pass_obj
def add_project(invocation: Invocation, location: str) -> None:
    """Add a repository on this machine, or a git URL.

    \b
    tsuzuki commits projects add ~/src/django
    tsuzuki commits projects add https://example.com/group/project.git
    """
    with open_application(invocation) as application, waiting_told(invocation, location):
        change = commits_service(application).commits.add_repository(location, base=invocation.cwd)
    emit(invocation, [_change(change)], columns=SYNCED)


commits.add_command(add_target)


@commits.command("remove-target")
@click.argument("project", shell_complete=project_paths)
@click.argument("branch")
@yes_option
@click.pass_obj
def remove_target(invocation: Invocation, project: str, branch: str, yes: bool) -> None:
    """Stop following a branch. Collected commits are kept.

    \b
    tsuzuki commits remove-target 1 old-branch --yes
    """
    confirm(invocation, f"stop following {branch} of {project}", yes=yes)
    with open_application(invocation) as application:
        commits_service(application).commits.remove_target(project, branch)
    say(invocation, f"'{branch}' of {project} is no longer followed.")
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, {"project": project, "branch": branch})


@commits.command()
@click.pass_obj
def targets(invocation: Invocation) -> None:
    """List followed branches and how far each is collected.

    \b
    tsuzuki commits targets
    """
    with open_application(invocation) as application:
        found = commits_service(application).commits.targets()
    emit(
        invocation,
        found,
        columns=TARGETS,
        empty="no targets yet; add one with: tsuzuki commits add-target .",
    )


commits.add_command(collect)
commits.add_command(watch)


@commits.command()
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, help="Maximum number of results."
)
@click.pass_obj
def runs(invocation: Invocation, limit: int) -> None:
    """List collections, newest first.

    \b
    tsuzuki commits runs --limit 5
    """
    with open_application(invocation) as application:
        found = commits_service(application).collections.summaries(limit=limit)
    emit(
        invocation,
        found,
        columns=RUNS,
        empty="no collections yet; start one with: tsuzuki commits collect",
    )


@commits.command()
@click.argument("run", metavar="COLLECTION")
@click.pass_obj
def show(invocation: Invocation, run: str) -> None:
    """Show a collection and the result for each target. The first letters of its ID suffice.

    \b
    tsuzuki commits show 550e8400
    """
    with open_application(invocation) as application:
        view = commits_service(application).collections.show(run)
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, {**asdict(view.summary), **_beside_summary(view)})
        return
    emit(invocation, view.summary)
    emit(invocation, view.results, columns=RESULTS, empty="The collection has no targets.")


commits.add_command(retry)


@commits.command()
@click.argument("run", metavar="[COLLECTION]", required=False)
@click.pass_obj
def cancel(invocation: Invocation, run: str | None) -> None:
    """Cancel the running collection. Collected commits are kept; the rest stays pending.

    \b
    tsuzuki commits cancel 550e8400
    """
    with open_application(invocation) as application:
        summary = commits_service(application).collections.cancel(run)
    emit(invocation, [summary], columns=RUNS)
    say(
        invocation,
        f"Continue with the remaining targets: tsuzuki commits retry {summary.collection_id}",
    )


commits.add_command(stats)
commits.add_command(chart)
commits.add_command(export)


def _change(change: "ProjectChange") -> dict[str, Any]:
    words = []
    if change.is_new:
        words.append("new")
    if change.renamed_from:
        words.append(f"renamed from {change.renamed_from}")
    if change.default_moved_from:
        words.append(
            f"default branch is now {change.project.default_branch}, was "
            f"{change.default_moved_from}"
        )
    return {**asdict(change.project), "change": "; ".join(words) or "unchanged"}


def _beside_summary(view: Any) -> dict[str, Any]:
    return {
        "retry_of": view.retry_of,
        "job_run_id": view.job_run_id,
        "results": [asdict(result) for result in view.results],
    }
