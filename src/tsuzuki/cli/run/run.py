"""`tsuzuki run`: list, watch, explain, cancel and retry runs."""

import sys
import threading
from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.application import ask, open_application
from tsuzuki.cli.arguments import RunNumber, since_option, timeout_option, until_option
from tsuzuki.cli.commands import Group
from tsuzuki.cli.completions import job_names, run_ids, worker_ids
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.options import EnumChoice, before_id_option
from tsuzuki.cli.run.bulk import bulk
from tsuzuki.cli.run.failures import failures
from tsuzuki.cli.run.states import ShownState, in_states, shown_state
from tsuzuki.cli.run.views import COLUMNS, HISTORY, row, summary, terminal_history, terminal_list
from tsuzuki.cli.run.watch import (
    exit_with_result,
    reason_columns,
    sentence,
    telling_that_it_goes_on,
    watch_run,
)
from tsuzuki.cli.terminal.output import Column, emit, is_terminal, say, warn, write
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import Conflict, NotFound, TsuzukiError, UsageError
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Reason
from tsuzuki.model.visible_text import neutralise

if TYPE_CHECKING:
    from tsuzuki.model.run import Run
    from tsuzuki.services.explain import StatusReason
    from tsuzuki.services.logs import LogLine
    from tsuzuki.services.reader import Reader
    from tsuzuki.wiring.application import Application

LINES = [Column("at"), Column("stream"), Column("body", "TEXT")]

run_id_argument = click.argument("run_id", metavar="RUN", type=RunNumber(), shell_complete=run_ids)


@click.group(cls=Group)
def run() -> None:
    """List, watch, explain, cancel and retry runs.

    \b
    tsuzuki run ls
    tsuzuki run explain 7
    """


@run.command()
@click.option(
    "--job",
    "job_name",
    metavar="NAME",
    help="Show only runs of this job.",
    shell_complete=job_names(),
)
@click.option(
    "--state",
    "states",
    multiple=True,
    type=EnumChoice(ShownState),
    metavar="STATE",
    help="Show only runs in this state. Can be repeated. SKIPPED is separate from CANCELED.",
)
@click.option(
    "--worker",
    "worker_id",
    metavar="WORKER",
    help="Show only runs on this worker.",
    shell_complete=worker_ids,
)
@click.option(
    "--reason",
    type=EnumChoice(Reason),
    metavar="REASON",
    help="Show only runs that ended for this reason.",
)
@click.option(
    "--search",
    metavar="TEXT",
    help="Search in the error, job name and concurrency key.",
)
@since_option
@until_option
@click.option(
    "--limit", type=click.IntRange(1, 1000), default=20, help="Maximum number of results."
)
@before_id_option
@click.pass_obj
def ls(
    invocation: Invocation,
    /,
    states: tuple[ShownState, ...],
    since: datetime | None,
    until: datetime | None,
    limit: int,
    **wanted: Any,
) -> None:
    """List runs, newest first.

    \b
    tsuzuki run ls --job hello --state FAILED
    tsuzuki run ls --since 24h --search timeout
    """
    narrowed = RunFilter(
        **in_states(states),
        created_from=since,
        created_until=until,
        limit=limit + 1,
        **wanted,
    )

    is_read = invocation.output is OutputFormat.TABLE and is_terminal(sys.stdout)

    def question(source: "Application | Reader") -> "tuple[list[Run], dict[int, StatusReason]]":
        found = source.runs.find(narrowed)
        is_told = is_read or invocation.output.is_json
        return found, source.runs.waiting_reasons(found[:limit]) if is_told else {}

    found, reasons = ask(invocation, question, needs_file=False)
    shown = found[:limit]
    is_narrowed = states or since or until or any(one is not None for one in wanted.values())
    empty = (
        "no matching runs" if is_narrowed else "no runs yet; start one with: tsuzuki job run hello"
    )
    if is_read:
        rows, columns = terminal_list(shown, SystemClock().now(), reasons)
        emit(invocation, rows, columns=columns, empty=empty)
    else:
        emit(
            invocation,
            [row(one, reasons.get(one.id), is_json=invocation.output.is_json) for one in shown],
            columns=COLUMNS,
            empty=empty,
        )
    if len(found) > limit:
        say(invocation, f"Show older runs with: tsuzuki run ls --before-id {shown[-1].id}")


@run.command()
@run_id_argument
@click.option("--all", "everything", is_flag=True, help="Include internal fields.")
@click.pass_obj
def show(invocation: Invocation, run_id: int, everything: bool) -> None:
    """Show a run's details and history.

    \b
    tsuzuki run show 7
    tsuzuki run show 7 --all
    """
    view = ask(invocation, lambda source: source.runs.get(run_id), needs_file=False)
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, view.as_dict())
        return
    now = SystemClock().now()
    if everything:
        emit(invocation, {**asdict(view.run), "retried_as": view.retried_as})
    else:
        shown, columns = summary(view, now)
        emit(invocation, shown, columns=columns)
    say(invocation, "History:")
    history = terminal_history(now) if is_terminal(sys.stdout) else HISTORY
    emit(invocation, view.history, columns=history, empty="no history yet")


@run.command()
@run_id_argument
@click.option("--follow", "-f", is_flag=True, help="Continue until the run ends.")
@click.option(
    "--tail", type=click.IntRange(1, 10_000), metavar="N", help="Show only the last N lines."
)
@click.pass_obj
def logs(invocation: Invocation, run_id: int, follow: bool, tail: int | None) -> None:
    """Print a run's output.

    With --follow, the exit code is the run's result.

    \b
    tsuzuki run logs 7 --follow
    """
    with open_application(invocation, needs_file=False) as application:
        if tail is not None and not follow:
            _print_lines(invocation, application.logs.tail(run_id, tail))
            return
        start = application.logs.tail(run_id, tail)[:1] if tail is not None else []
        after_seq = start[0].seq - 1 if start else 0
        if not follow:
            _print_lines(invocation, application.logs.read_all(run_id))
            return
        pause = threading.Event()
        lines = application.logs.follow(run_id, wait=pause.wait, after_seq=after_seq)
        _print_lines(invocation, lines)
        exit_with_result(application.runs.get(run_id).run)


@run.command()
@run_id_argument
@timeout_option
@click.pass_obj
def watch(invocation: Invocation, run_id: int, timeout: float | None) -> None:
    """Watch a run until it ends and exit with its result.

    \b
    tsuzuki run watch 7 --timeout 60
    """
    with (
        open_application(invocation) as application,
        telling_that_it_goes_on(invocation, run_id),
    ):
        ended = watch_run(
            invocation, application, run_id, timeout=timeout, with_log=True, follows_retries=True
        )
    emit(invocation, row(ended, is_json=invocation.output.is_json), columns=COLUMNS)
    exit_with_result(ended)


@run.command()
@click.argument(
    "run_ids",
    metavar="RUN...",
    nargs=-1,
    required=True,
    type=RunNumber(),
    shell_complete=run_ids,
)
@click.pass_obj
def cancel(invocation: Invocation, run_ids: tuple[int, ...]) -> None:
    """Cancel runs that are waiting or in progress.

    \b
    tsuzuki run cancel 7 8
    """
    with open_application(invocation) as application:
        refused: list[TsuzukiError] = []
        canceled = []
        for run_id in run_ids:
            try:
                canceled.append(application.runs.cancel(run_id))
                say(invocation, _canceled_sentence(canceled[-1]))
            except (Conflict, NotFound) as problem:
                refused.append(problem)
    for refusal in refused[:-1]:
        warn(invocation, refusal.message)
    if refused:
        raise refused[-1]
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, map(row, canceled), columns=COLUMNS)


def _canceled_sentence(run: "Run") -> str:
    if run.state.is_final:
        return sentence(run)
    return (
        f"Cancel requested: run {run.id} ({run.job_name}) will be canceled when its "
        "handler's transaction ends."
    )


@run.command()
@run_id_argument
@click.option("--watch", "watching", is_flag=True, help="Watch the new run until it ends.")
@timeout_option
@click.pass_obj
def retry(invocation: Invocation, run_id: int, watching: bool, timeout: float | None) -> None:
    """Retry a finished run as a new run.

    \b
    tsuzuki run retry 7 --watch
    """
    if timeout is not None and not watching:
        raise UsageError(
            "--timeout limits the watching, so it requires --watch",
            hint=f"Use: tsuzuki run retry {run_id} --watch --timeout {timeout:g}",
        )
    with open_application(invocation) as application:
        submission = application.runs.retry(run_id)
        emit(invocation, {"run_id": submission.run_id, "retry_of": run_id})
        if watching:
            new_id = submission.run_id
            with telling_that_it_goes_on(invocation, new_id):
                ended = watch_run(
                    invocation,
                    application,
                    new_id,
                    timeout=timeout,
                    with_log=True,
                    follows_retries=True,
                )
            exit_with_result(ended)


@run.command()
@run_id_argument
@click.pass_obj
def explain(invocation: Invocation, run_id: int) -> None:
    """Explain a run's state and why it has not started.

    Of a Python function that is running, shows its live stack too.

    \b
    tsuzuki run explain 7
    """
    with open_application(invocation, needs_file=False) as application:
        explanation = application.runs.explain(run_id)
        stack = application.runs.stack(run_id)
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, {**explanation.as_dict(), "stack": stack and stack._asdict()})
        return
    say(invocation, f"Run {run_id} of {explanation.job} is {shown_state(explanation)}.")
    emit(invocation, explanation.reasons, columns=reason_columns(explanation.reasons))
    if stack is not None:
        say(invocation, "Its function is at:")
        for line in stack.stack.splitlines():
            write(neutralise(line))


run.add_command(bulk)
run.add_command(failures)


def _print_lines(invocation: Invocation, lines: "Iterable[LogLine]") -> None:
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, map(asdict, lines), columns=LINES)
        return
    is_empty = True
    for line in lines:
        is_empty = False
        # As it was written, to where it was written; but nothing in it may move a cursor.
        stream = sys.stderr if line.stream == "stderr" else sys.stdout
        write(neutralise(line.body), stream=stream)
    if is_empty:
        say(invocation, "No output.")
