"""Run a job now and wait for its end, by the engine that runs or, if there is none, by one of this process."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tsuzuki.cli.application import apply_file
from tsuzuki.cli.foreground import write_log
from tsuzuki.cli.invocation import Invocation, OutputFormat
from tsuzuki.cli.output import emit, say
from tsuzuki.cli.run_watch import exit_with_result, watch_run

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
        say(invocation, "No engine is running: starting one until this is done.")
        write_log(invocation, quiet=True)

    apply_file(invocation, application)
    submission = application.runs.submit(Request(job=name, arguments=arguments))
    with application.local_engine.ensure_running(only_job=name, on_start=say_started):
        ended = watch_run(invocation, application, submission.run_id, timeout=timeout)
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
