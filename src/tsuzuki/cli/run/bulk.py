"""`tsuzuki run bulk`: cancel or retry all runs that match a filter, after showing how many they are."""

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from tsuzuki.cli.application import open_application
from tsuzuki.cli.arguments import StoredId
from tsuzuki.cli.commands import Group
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.options import EnumChoice, before_id_option, limit_option
from tsuzuki.cli.run.views import COLUMNS, row
from tsuzuki.cli.run.watch import exit_with_result, watch_run
from tsuzuki.cli.terminal.confirmation import confirm, yes_option
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.model.built_in_jobs import BULK_ACTIONS
from tsuzuki.model.bulk import BulkVerb
from tsuzuki.model.states import Reason, RunState

if TYPE_CHECKING:
    from tsuzuki.services.bulk import BulkActionView
    from tsuzuki.wiring.application import Application

ACTIONS = [
    Column("id", align="right"),
    Column("verb"),
    Column("state"),
    Column("matched", align="right"),
    Column("done", align="right"),
    Column("created_at", "CREATED"),
    Column("created_by", "BY"),
]
RESULTS = [
    Column("run_id", "RUN", align="right"),
    Column("result"),
    Column("new_run_id", "NEW RUN", align="right"),
]

bulk_id_argument = click.argument("bulk_id", metavar="BULK", type=StoredId())


@click.group(cls=Group)
def bulk() -> None:
    """Cancel or retry many runs at once.

    \b
    tsuzuki run bulk retry --job report --dry-run
    tsuzuki run bulk cancel --state PENDING --yes
    """


def _filter_options(function: Any) -> Any:
    options: list[Callable[[Any], Any]] = [
        click.option("--job", "job_name", metavar="NAME", help="Select only runs of this job."),
        click.option(
            "--state",
            "states",
            multiple=True,
            type=EnumChoice(RunState),
            metavar="STATE",
            help="Select only runs in this state. Can be repeated.",
        ),
        click.option(
            "--worker", "worker_id", metavar="WORKER", help="Select only runs on this worker."
        ),
        click.option(
            "--reason",
            type=EnumChoice(Reason),
            metavar="REASON",
            help="Select only runs that ended for this reason.",
        ),
        click.option(
            "--failure-group",
            metavar="GROUP",
            help="Select only runs in this failure group; `tsuzuki run failures ls` lists the IDs.",
        ),
        click.option(
            "--dry-run",
            is_flag=True,
            help="Count the matching runs and show ten of them; change nothing.",
        ),
        click.option(
            "--background", is_flag=True, help="Start the action and return without waiting."
        ),
        yes_option,
    ]
    for option in reversed(options):
        function = option(function)
    return function


@bulk.command()
@_filter_options
@click.pass_obj
def cancel(invocation: Invocation, /, **wanted: Any) -> None:
    """Cancel all matching runs that have not ended.

    \b
    tsuzuki run bulk cancel --job report --dry-run
    """
    act(invocation, BulkVerb.CANCEL, **wanted)


@bulk.command()
@_filter_options
@click.pass_obj
def retry(invocation: Invocation, /, **wanted: Any) -> None:
    """Retry all matching runs that have ended and were not retried yet.

    Without --state: failed and timed-out runs.

    \b
    tsuzuki run bulk retry --job report --reason worker_lost --yes
    """
    act(invocation, BulkVerb.RETRY, **wanted)


@bulk.command()
@limit_option
@before_id_option
@click.pass_obj
def ls(invocation: Invocation, limit: int, before_id: int | None) -> None:
    """List bulk actions and previews, newest first.

    \b
    tsuzuki run bulk ls --limit 5
    """
    with open_application(invocation) as application:
        found = application.bulk.find(limit=limit, before_id=before_id)
    rows = [view.as_dict() for view in found]
    emit(
        invocation, rows, columns=ACTIONS, empty="no bulk actions yet; see: tsuzuki run bulk --help"
    )


@bulk.command()
@bulk_id_argument
@click.option(
    "--after-run", type=StoredId(0), default=0, metavar="RUN", help="Continue after this run ID."
)
@limit_option
@click.pass_obj
def show(invocation: Invocation, bulk_id: int, after_run: int, limit: int) -> None:
    """Show a bulk action and its result for each run.

    \b
    tsuzuki run bulk show 3
    """
    with open_application(invocation) as application:
        view = application.bulk.get(bulk_id)
        found = application.bulk.results(bulk_id, after_run_id=after_run, limit=limit + 1)
    results = [one._asdict() for one in found[:limit]]
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, {**view.as_dict(), "results": results})
        return
    emit(invocation, view.as_dict())
    emit(invocation, results, columns=RESULTS, empty="no runs changed yet")
    if len(found) > limit:
        last = results[-1]["run_id"]
        say(invocation, f"More: tsuzuki run bulk show {bulk_id} --after-run {last}")


@bulk.command()
@bulk_id_argument
@click.pass_obj
def stop(invocation: Invocation, bulk_id: int) -> None:
    """Stop a bulk action. Changes already made are kept.

    \b
    tsuzuki run bulk stop 3
    """
    with open_application(invocation) as application:
        view = application.bulk.stop(bulk_id)
    say(invocation, f"Stopped after {view.action.done} of {view.action.matched} runs.")
    if invocation.output is not OutputFormat.TABLE:
        emit(invocation, view.as_dict(), columns=ACTIONS)


def act(
    invocation: Invocation,
    verb: BulkVerb,
    *,
    states: tuple[RunState, ...],
    dry_run: bool,
    background: bool,
    yes: bool,
    **wanted: Any,
) -> None:
    """Preview an action, ask, and carry it out here or leave it to the running processes."""
    from tsuzuki.services.runs import RunFilter

    with open_application(invocation) as application:
        preview = application.bulk.preview(verb, RunFilter(states=frozenset(states), **wanted))
        if dry_run or not preview.action.matched:
            _show_preview(invocation, preview)
            return
        _say_preview(invocation, preview, with_samples=not yes)
        count = preview.action.matched
        confirm(invocation, f"{verb} {count} {'run' if count == 1 else 'runs'}", yes=yes)
        view = application.bulk.confirm(preview.action.id)
        if background:
            emit(invocation, view.as_dict())
            return
        _carry_out(invocation, application, view)


def _carry_out(invocation: Invocation, application: "Application", view: "BulkActionView") -> None:
    from tsuzuki.cli.serve.foreground import write_log  # noqa: PLC0415 -- only an action that is carried out here needs it

    def say_started() -> None:
        say(invocation, "No engine is running: starting one for this action.")
        write_log(invocation, quiet=True)

    run_id = view.action.run_id
    if run_id is None:  # the leader carries it out
        with application.local_engine.ensure_running(work=False, on_start=say_started):
            emit(invocation, application.bulk.wait(view.action.id).as_dict())
        return
    with application.local_engine.ensure_running(
        only_job=BULK_ACTIONS, only_run=run_id, on_start=say_started
    ):
        ended = watch_run(invocation, application, run_id, timeout=None)
    after = application.bulk.get(view.action.id)
    emit(invocation, after.as_dict())
    exit_with_result(ended)


def _show_preview(invocation: Invocation, preview: "BulkActionView") -> None:
    if invocation.output is not OutputFormat.TABLE:
        samples = [row(run) for run in preview.samples]
        emit(invocation, {**preview.as_dict(), "samples": samples})
        return
    _say_preview(invocation, preview, with_samples=True)


def _say_preview(invocation: Invocation, preview: "BulkActionView", *, with_samples: bool) -> None:
    matched, shown = preview.action.matched, len(preview.samples)
    if with_samples and shown and invocation.output is OutputFormat.TABLE:
        emit(invocation, map(row, preview.samples), columns=COLUMNS)
        sys.stdout.flush()
    more = f"; {matched - shown} more are not shown" if with_samples and matched > shown else ""
    say(invocation, f"{matched} {'run matches' if matched == 1 else 'runs match'}{more}.")
