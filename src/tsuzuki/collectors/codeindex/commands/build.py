"""`tsuzuki index build` and `status`."""

import sys
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from tsuzuki.cli.commands import Command
from tsuzuki.cli.errors import ExitWith
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.formatting import format_stored_time
from tsuzuki.cli.terminal.output import Column, emit, is_terminal, say, warn
from tsuzuki.collectors.codeindex.commands.service import builds_service, language_servers
from tsuzuki.model.errors import NotFound, WorkFailed

if TYPE_CHECKING:
    from tsuzuki.collectors.codeindex.commands.progress import BuildBar, BuildLines
    from tsuzuki.collectors.codeindex.service.builds import BuildJob, Builds, IndexStatus

LOOK_SECONDS = 0.1
CANCEL_SECONDS = 10.0


RESULT = [
    Column("id", "BUILD"),
    Column("files", align="right"),
    Column("updatedFiles", "UPDATED", align="right"),
    Column("removedFiles", "REMOVED", align="right"),
    Column("totalIndexedSymbols", "SYMBOLS", align="right"),
]
STATUS = [
    Column("root"),
    Column("state"),
    Column("job", "BUILD"),
    Column("files", align="right"),
    Column("total", "SYMBOLS", align="right"),
    Column("lastIndexedAt", "INDEXED AT", format=format_stored_time),
    Column("outcomes"),
    Column("languages"),
    Column("index_file"),
]


@click.command(cls=Command)
@click.argument("path", required=False)
@click.option(
    "--background", is_flag=True, help="Print the build ID and continue in the background."
)
@click.option(
    "--lsp",
    "said",
    multiple=True,
    metavar="LANGUAGE=COMMAND",
    help="Take a language's symbols from this language server; `none` for no server.",
)
@click.pass_obj
def build(
    invocation: Invocation, path: str | None, background: bool, said: tuple[str, ...]
) -> None:
    """Build or update the index of a tree.

    Only changed files are parsed. If the tree is already being built by any process, that build is followed.

    \b
    tsuzuki index build
    tsuzuki index build ~/src/django --background
    tsuzuki index build --lsp python='basedpyright-langserver --stdio'
    """
    builds = builds_service(invocation)
    lsp = language_servers(said)
    root = builds.root(path, cwd=invocation.cwd)
    started = builds.start_detached(root, lsp=lsp) if background else builds.start(root, lsp=lsp)
    for note in started.notes:
        warn(invocation, note)
    if not started.is_new:
        say(invocation, f"A build of {root} is running already.")
        if said:
            warn(
                invocation, "--lsp is ignored: the build already running keeps its language servers"
            )
    if background:
        emit(invocation, {"id": started.id, "root": str(root), "is_new": started.is_new})
        return
    job = _follow(invocation, builds, root, started.id)
    _tell_end(invocation, builds, root, job)


def _follow(invocation: Invocation, builds: "Builds", root: Path, job_id: str) -> "BuildJob":
    """Show how a build goes until it ends."""
    pause = threading.Event()
    try:
        with _shown(invocation) as shown:
            while True:
                job = builds.job(root, job_id)
                if job is None:
                    raise WorkFailed(
                        f"build {job_id} was taken over by another build",
                        hint="See: tsuzuki index status",
                        code="build_taken_over",
                    )
                shown.show(job)
                if job.status != "running":
                    return job
                if not builds.jobs.wait(job_id, LOOK_SECONDS):
                    pause.wait(LOOK_SECONDS)
    except KeyboardInterrupt:
        if builds.jobs.cancel(job_id):
            builds.jobs.wait(job_id, CANCEL_SECONDS)
            say(invocation, "Interrupted. Indexed files are kept; the next build does the rest.")
        raise


def _tell_end(invocation: Invocation, builds: "Builds", root: Path, job: "BuildJob") -> None:
    if job.result is None:
        raise WorkFailed(
            f"build {job.id} failed: {job.error}",
            hint="Indexed files are kept; the next build does the rest.",
            code="build_failed",
        )
    found = builds.status(root)
    if invocation.output.is_json:
        told = {"job": job.as_json(), "outcomes": found.outcomes, "problems": found.problems}
        emit(invocation, told)
        return
    emit(
        invocation,
        [{"id": job.id, "files": job.progress.total, **job.result.as_json()}],
        columns=RESULT,
    )
    if not found.is_listed:
        warn(
            invocation,
            f"git does not list the files of {root}, so the index may include ignored files; "
            f"to see why, run: git -C {root} status",
        )
    for problem in found.problems:
        warn(invocation, f"{problem['path']}: {problem['outcome']}: {problem['error']}")


def _shown(invocation: Invocation) -> "BuildBar | BuildLines":
    from tsuzuki.collectors.codeindex.commands import progress as index_progress

    if invocation.quiet or invocation.output.is_json or not is_terminal(sys.stderr):
        return index_progress.BuildLines(invocation)
    return index_progress.BuildBar(invocation)


@click.command(cls=Command)
@click.argument("path", required=False)
@click.option(
    "--job", "job_id", metavar="ID", help="Show only this build, for as long as it is remembered."
)
@click.pass_obj
def status(invocation: Invocation, path: str | None, job_id: str | None) -> None:
    """Show the state of an index and of its build.

    The build may be running in any process. It is remembered for five minutes after its end.

    \b
    tsuzuki index status
    tsuzuki index status --job build-1730188800000-abc123
    """
    builds = builds_service(invocation)
    root = builds.root(path, cwd=invocation.cwd)
    if job_id is not None:
        _show_job(invocation, builds, root, job_id)
        return
    found = builds.status(root)
    if found.state == "missing":
        say(invocation, f"There is no index of {root} yet. Build it with: tsuzuki index build")
    emit(invocation, found.as_json() if invocation.output.is_json else _row(found), columns=STATUS)


def _show_job(invocation: Invocation, builds: "Builds", root: Path, job_id: str) -> None:
    job = builds.job(root, job_id)
    if job is None:
        raise NotFound(
            f"there is no build {job_id} of {root}",
            hint="A build is remembered for five minutes after its end. See: tsuzuki index status",
            code="build_unknown",
        )
    emit(invocation, job.as_json())
    if job.status == "failed":
        raise ExitWith(1)


def _row(found: "IndexStatus") -> dict[str, object]:
    job = found.job
    return {
        "root": found.root,
        "state": found.state,
        "job": _job_words(job) if job else None,
        "files": sum(found.outcomes.values()),
        "total": found.stats.total if found.stats else None,
        "lastIndexedAt": found.stats.last_indexed_at if found.stats else None,
        "outcomes": _counts(found.outcomes),
        "languages": _counts(found.languages),
        "index_file": found.index_file,
    }


def _job_words(job: "BuildJob") -> str:
    progress = job.progress
    share = 100 * progress.processed // progress.total if progress.total else 0
    words = f"{job.id} {job.status}"
    if job.status == "running":
        return f"{words} {share} % ({progress.processed} of {progress.total})"
    return f"{words}: {job.error}" if job.error else words


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in counts.items()) or "-"
