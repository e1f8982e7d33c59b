"""`tsuzuki commits add-target`: follow a branch, those that match a pattern, or those of every project."""

from collections import Counter

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.commands import Command
from tsuzuki.cli.errors import ExitWith
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.formatting import format_stored_time
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.cli.terminal.progress import ProgressInterval, waiting_told
from tsuzuki.collectors.commits.commands.service import commits_service
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import NotFound, UsageError

TARGETS = [
    Column("project_id", "ID", align="right"),
    Column("project", shrinks=True),
    Column("branch", shrinks=True),
    Column("last_collected", "NEWEST COMMIT", format=format_stored_time),
    Column("head", shrinks=True),
    Column("collected_at_utc", "COLLECTED", format=format_stored_time),
]
ADDITIONS = [
    Column("project_id", "ID", align="right"),
    Column("project"),
    Column("branch"),
    Column("outcome"),
    Column("reason"),
]
EXIT_FAILED = 1


@click.command("add-target", cls=Command)
@click.argument("project", required=False)
@click.argument("branch", required=False)
@click.option(
    "--all-branches", is_flag=True, help="Follow all branches instead of the default one."
)
@click.option(
    "--pattern",
    "patterns",
    metavar="GLOB",
    multiple=True,
    help="Follow every branch whose name matches, such as 'release/*'. Can be repeated.",
)
@click.option("--all-projects", is_flag=True, help="Follow branches of all known projects.")
@click.option(
    "--dry-run", is_flag=True, help="Show which branches would be followed without adding them."
)
@click.pass_obj
def add_target(
    invocation: Invocation,
    project: str | None,
    branch: str | None,
    all_branches: bool,
    patterns: tuple[str, ...],
    all_projects: bool,
    dry_run: bool,
) -> None:
    """Follow a branch of a project (default: its default branch).

    PROJECT is a number, a path, a folder or a git URL. In a pattern, `*` matches any characters, including
    `/`. Exit code 1 if a project is unavailable, 4 if nothing matched.

    \b
    tsuzuki commits add-target . main
    tsuzuki commits add-target group/project --pattern 'release/*'
    tsuzuki commits add-target --all-projects --all-branches --dry-run
    """
    _require_consistent(project, branch, all_projects, is_many=all_branches or bool(patterns))
    if branch is not None or not (all_branches or patterns or all_projects or dry_run):
        _add_one(invocation, str(project), branch, dry_run=dry_run)
        return
    wanted = patterns or (("*",) if all_branches else ())
    _add_matching(invocation, project, wanted, dry_run=dry_run)


def _require_consistent(
    project: str | None, branch: str | None, all_projects: bool, *, is_many: bool
) -> None:
    if project is None and not all_projects:
        raise UsageError("missing project", hint="Name one, or use --all-projects.")
    if project is not None and all_projects:
        raise UsageError(
            f"--all-projects and the project {project!r} cannot be combined",
            hint="Use one of them.",
        )
    if branch is not None and is_many:
        raise UsageError(
            f"the branch {branch!r} cannot be combined with --all-branches or --pattern",
            hint="Use one of them.",
        )


def _add_one(invocation: Invocation, project: str, branch: str | None, *, dry_run: bool) -> None:
    with open_application(invocation) as application:  # a dry run needs the tables too
        commits = commits_service(application).commits
        if dry_run:
            emit(
                invocation,
                commits.preview_target(project, branch, base=invocation.cwd),
                columns=ADDITIONS,
            )
            return
        with waiting_told(invocation, project):
            view = commits.add_target(project, branch, base=invocation.cwd)
    if view.why_default is not None:
        say(invocation, f"Following {view.branch} of {view.project}: {view.why_default}.")
    emit(invocation, [view], columns=TARGETS)


def _add_matching(
    invocation: Invocation, project: str | None, patterns: tuple[str, ...], *, dry_run: bool
) -> None:
    with open_application(invocation) as application:  # a dry run needs the tables too
        additions = commits_service(application).commits.add_targets(
            project,
            patterns,
            base=invocation.cwd,
            dry_run=dry_run,
            tell=_Progress(invocation).tell,
        )
    counts = Counter(addition.outcome.value for addition in additions)
    if counts["no_match"] == len(additions):
        what = " or ".join(repr(pattern) for pattern in patterns)
        raise NotFound(
            f"no branch of any project matches {what}" if what else "no project has a branch yet",
            hint="List the branches with: tsuzuki commits add-target --all-projects --all-branches "
            "--dry-run",
            code="branch_unknown",
        )
    emit(invocation, additions, columns=ADDITIONS)
    _say_sum(invocation, counts, dry_run=dry_run)
    if counts["failed"]:
        raise ExitWith(EXIT_FAILED)


def _say_sum(invocation: Invocation, counts: Counter[str], *, dry_run: bool) -> None:
    words = {
        "added": "added",
        "would_add": "would be added",
        "present": "already followed",
        "no_match": "without a match",
        "failed": "failed",
    }
    told = [f"{counts[outcome]} {text}" for outcome, text in words.items() if counts[outcome]]
    end = " Nothing was changed." if dry_run else ""
    say(invocation, f"{', '.join(told)}.{end}")


class _Progress:
    """A line every few seconds, and one for each pause that a host asks for."""

    def __init__(self, invocation: Invocation) -> None:
        self._invocation = invocation
        self._interval = ProgressInterval(SystemClock())

    def tell(self, done: int, total: int, waiting_for: str | None) -> None:
        if waiting_for is not None:
            say(self._invocation, f"{done} of {total} projects checked; {waiting_for}")
        elif self._interval.is_over():
            say(self._invocation, f"{done} of {total} projects checked")
