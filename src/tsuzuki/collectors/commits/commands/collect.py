"""`tsuzuki commits collect`: start or take over a collection, and watch it until it ends.

If no engine is running, this process executes the collection, and nothing else.
"""

import sys
import threading
from contextlib import closing, suppress
from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from tsuzuki.cli.application import apply_file, open_application
from tsuzuki.cli.commands import Command
from tsuzuki.cli.errors import ExitWith
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.serve.foreground import ProcessSignals
from tsuzuki.cli.terminal.output import Column, emit, is_terminal, say
from tsuzuki.collectors.commits.commands.completions import project_paths
from tsuzuki.collectors.commits.commands.progress_lines import ProgressLines
from tsuzuki.collectors.commits.commands.service import commits_service
from tsuzuki.model.errors import Conflict, Interrupted, NotFound, WorkFailed
from tsuzuki.model.states import RunState

if TYPE_CHECKING:
    from tsuzuki.collectors.commits.commands.progress import Bars
    from tsuzuki.collectors.commits.service.collections import CollectionProgress, StartedCollection
    from tsuzuki.services.one_run_engine import OneRunEngine
    from tsuzuki.wiring.application import Application

LOOK_SECONDS = 0.2
FIRST_LOOK_SECONDS = 0.02

RESULTS = [
    Column("path", "PROJECT"),
    Column("branch_name", "BRANCH"),
    Column("status"),
    Column("new_commits_count", "NEW", align="right"),
    Column("error_message", "ERROR"),
    Column("notes", format=lambda notes: "; ".join(note.sentence for note in notes) or "-"),
]


@click.command(cls=Command)
@click.argument("references", metavar="[PROJECT]...", nargs=-1, shell_complete=project_paths)
@click.option("--branch", metavar="BRANCH", help="Collect only this branch.")
@click.option("--detach", is_flag=True, help="Start the collection and return without waiting.")
@click.pass_obj
def collect(
    invocation: Invocation, references: tuple[str, ...], branch: str | None, detach: bool
) -> None:
    """Collect new commits of every target, or of the given projects.

    Exit code 1 if a target failed, 6 if a collection is already running.

    \b
    tsuzuki commits collect
    tsuzuki commits collect group/project --branch main
    """
    with open_application(invocation) as application:
        apply_file(invocation, application)
        started = commits_service(application).collections.start(references, branch=branch)
        is_of_all = not references and branch is None
        _follow(invocation, application, started, detach=detach, is_of_all=is_of_all)


@click.command(cls=Command)
@click.argument("run", metavar="COLLECTION")
@click.option("--detach", is_flag=True, help="Start the collection and return without waiting.")
@click.pass_obj
def retry(invocation: Invocation, run: str, detach: bool) -> None:
    """Collect the targets that failed or stayed pending in an earlier collection.

    \b
    tsuzuki commits retry 550e8400
    """
    with open_application(invocation) as application:
        started = commits_service(application).collections.retry(run)
        _follow(invocation, application, started, detach=detach)


@click.command(cls=Command)
@click.pass_obj
def watch(invocation: Invocation) -> None:
    """Watch the running collection until it ends.

    \b
    tsuzuki commits watch
    """
    with open_application(invocation) as application:
        running = next(
            (
                one
                for one in commits_service(application).collections.summaries(limit=5)
                if one.completed_at_utc is None
            ),
            None,
        )
        if running is None:
            raise NotFound("no collection is running", hint="See: tsuzuki commits runs")
        _see_through(invocation, application, running.collection_id)


def _follow(
    invocation: Invocation,
    application: "Application",
    started: "StartedCollection",
    *,
    detach: bool,
    is_of_all: bool = False,
) -> None:
    if started.is_takeover:
        say(
            invocation,
            f"Continuing collection {started.collection_id}, which was not finished.",
        )
    else:
        say(invocation, f"Collection {started.collection_id} of {started.total_targets} targets.")
    if detach:
        is_executed = application.liveness.has_live_leader_and_worker()
        if not is_executed:
            say(
                invocation,
                "No engine is running, so the collection waits. Start one with `tsuzuki up`, or "
                "collect here with `tsuzuki commits watch`.",
            )
        emit(invocation, {**asdict(started), "engine_at_work": is_executed})
        return
    _see_through(invocation, application, started.collection_id, is_of_all=is_of_all)


def _see_through(
    invocation: Invocation,
    application: "Application",
    collection_id: str,
    *,
    is_of_all: bool = False,
) -> None:
    """Stay with a collection until it has ended, and end with its result. One that `is_of_all` targets is
    continued by the next such one."""

    def find_run() -> int | None:
        return commits_service(application).collections.show(collection_id).job_run_id

    signals = ProcessSignals(application.local_engine.hurry)
    with closing(application.one_run_engine(find_run)) as engine:
        _watch(invocation, application, collection_id, stop=signals.received, engine=engine)
        if signals.received.is_set():
            next_command = "collect" if is_of_all else f"retry {collection_id}"
            raise _given_up(application, collection_id, next_command, is_ours=engine.is_ours)
    _tell_end(invocation, application, collection_id)


def _given_up(
    application: "Application", collection_id: str, next_command: str, *, is_ours: bool
) -> Interrupted:
    """After ^C: what this process executes is cancelled, or a retry would take its place."""
    if not is_ours:
        return Interrupted(
            f"interrupted; collection {collection_id} continues",
            hint="Cancel it with: tsuzuki commits cancel",
        )
    with suppress(Conflict):  # it has just ended
        commits_service(application).collections.cancel(collection_id)
    return Interrupted(
        f"collection {collection_id} was interrupted",
        hint=f"Collected commits are kept; continue with: tsuzuki commits {next_command}",
    )


def _watch(
    invocation: Invocation,
    application: "Application",
    collection_id: str,
    *,
    stop: threading.Event,
    engine: "OneRunEngine",
) -> None:
    """Show how a collection goes until it ends, or until asked to stop."""
    no_bars = invocation.quiet or invocation.output.is_json or not is_terminal(sys.stderr)
    pause = FIRST_LOOK_SECONDS
    with ProgressLines(invocation) if no_bars else _bars(invocation) as shown:
        while True:
            progress = commits_service(application).collections.progress(collection_id)
            engine.check(is_running=progress.job_run_state is RunState.RUNNING)
            shown.show(progress)
            if progress.summary.completed_at_utc is not None:
                return
            _refuse_failed(progress)
            if stop.wait(pause):
                return
            pause = min(pause * 1.5, LOOK_SECONDS)


def _refuse_failed(progress: "CollectionProgress") -> None:
    """The run that worked on it has failed for good, and the collection waits for another."""
    if progress.job_run_state in (RunState.FAILED, RunState.TIMED_OUT):
        raise WorkFailed(
            f"collection {progress.summary.collection_id} stopped: {progress.error}",
            hint="Collected commits are kept; continue with: tsuzuki commits collect",
        )


def _tell_end(invocation: Invocation, application: "Application", collection_id: str) -> None:
    view = commits_service(application).collections.show(collection_id)
    if invocation.output is OutputFormat.TABLE:
        emit(invocation, view.results, columns=RESULTS, empty="The collection had no targets.")
        summary = view.summary
        say(
            invocation,
            f"Collection {collection_id} {summary.run_status}: {summary.success_count} succeeded, "
            f"{summary.failed_count} failed, {summary.pending_count} pending.",
        )
    else:
        results = [asdict(result) for result in view.results]
        emit(invocation, {**asdict(view.summary), "results": results})
    if view.summary.failed_count or view.summary.pending_count:
        raise ExitWith(1)


def _bars(invocation: Invocation) -> "Bars":
    from tsuzuki.collectors.commits.commands.progress import Bars

    return Bars(invocation)
