"""Start a run and wait for its end, on the running engine or, if there is none, on one started in this process."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from tsuzuki.cli.application import apply_file
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.run.watch import exit_with_result, say_that_it_goes_on, watch_run
from tsuzuki.cli.serve.foreground import write_log
from tsuzuki.cli.terminal.output import emit, say
from tsuzuki.model.errors import Conflict, WaitTimedOut

if TYPE_CHECKING:
    from tsuzuki.model.run import Run
    from tsuzuki.wiring.application import Application


def run_and_wait(
    invocation: Invocation,
    application: "Application",
    name: str,
    *,
    arguments: Mapping[str, Any],
    timeout: float | None,
    tell: "Callable[[Invocation, Run], None]",
) -> None:
    """Submit a run, watch it and print its result; the exit code is its result too. For people `tell` prints
    it, for programs it is one object."""
    from tsuzuki.services.runs import Request

    def say_started() -> None:
        say(invocation, "No engine is running: starting one for this run.")
        write_log(invocation, quiet=True)

    apply_file(invocation, application)
    submission = application.runs.submit(Request(job=name, arguments=arguments), audited=True)
    run_id = submission.run_id
    with application.local_engine.ensure_running(
        only_job=name, only_run=run_id, on_start=say_started
    ) as is_ours:
        try:
            ended = watch_run(invocation, application, run_id, timeout=timeout)
        except KeyboardInterrupt:
            _give_up(invocation, application, run_id, is_ours=is_ours)
            raise
        except WaitTimedOut as problem:
            if is_ours:
                raise _cancelled_after(problem, application, run_id) from None
            raise
    if invocation.output is OutputFormat.TABLE:
        tell(invocation, ended)
    else:
        emit(
            invocation,
            {
                "run_id": ended.id,
                "state": ended.state,
                "result": ended.result,
                "error": ended.error,
            },
        )
    exit_with_result(ended)


def _give_up(
    invocation: Invocation, application: "Application", run_id: int, *, is_ours: bool
) -> None:
    """After ^C: a run of this process is cancelled, so that no other takes its place, and is not waited for: its
    call may hang. One that another engine executes goes on."""
    if not is_ours:
        say_that_it_goes_on(invocation, run_id)
        return
    with suppress(Conflict):  # it has just ended
        application.runs.cancel(run_id)
    application.local_engine.stop(at_once=True)
    say(invocation, f"Run {run_id} was canceled. What it has stored is kept.")


def _cancelled_after(
    problem: WaitTimedOut, application: "Application", run_id: int
) -> WaitTimedOut:
    """After the time that a person gave a run of this process: it does not go on, because this process ends."""
    hint = (
        "The run was canceled because no other process can execute it. What it has stored "
        f"is kept. See: tsuzuki run show {run_id}"
    )
    try:
        application.runs.cancel(run_id)
    except Conflict:
        hint = f"The run has ended since. See: tsuzuki run show {run_id}"
    application.local_engine.stop(at_once=True)
    return WaitTimedOut(problem.message, hint=hint)
