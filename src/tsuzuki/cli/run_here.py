"""Run a job now and wait for its end, with the engine that is there or, if there is none, one of our own."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.output import emit, say
from tsuzuki.cli.run_watch import exit_with_result, watch_run
from tsuzuki.cli.serving import log_to_stderr

if TYPE_CHECKING:
    from tsuzuki.wiring.application import Application


def run_to_its_end(
    invocation: Invocation,
    workspace: "Application",
    name: str,
    *,
    arguments: Mapping[str, Any],
    timeout: float | None,
) -> None:
    """Ask for a run, watch it and print what came of it; the exit code is its result."""
    from tsuzuki.services.runs import Request

    workspace.jobs.apply()
    submission = workspace.runs.submit(Request(job=name, arguments=arguments))
    with _somebody_works(invocation, workspace):
        ended = watch_run(invocation, workspace, submission.run_id, timeout=timeout)
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


@contextmanager
def _somebody_works(invocation: Invocation, workspace: "Application") -> Iterator[None]:
    """While the block runs there is an engine. Ours does whatever is due, as `run-due` would."""
    liveness = workspace.liveness
    if liveness.has_live_leader_and_worker():
        yield
        return
    if liveness.leader_died_here():
        workspace.workers.step_down()
    from tsuzuki.engine.role import Role
    from tsuzuki.wiring.engine import build_engine

    say(invocation, "No engine is running: starting one until this is done.")
    # Its own talk is not what was asked for; its warnings are.
    log_to_stderr(replace(invocation, quiet=not invocation.verbose), log_format="text")
    engine = build_engine(workspace.resources, Role(), {})
    engine.start()
    try:
        yield
    finally:
        engine.shut_down()
