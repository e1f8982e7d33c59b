"""From work that failed for good to the `RunFailed` of its caller, with the function's own exception."""

import re
from collections.abc import Callable, Sequence

from tsuzuki.model.errors import RunFailed
from tsuzuki.model.run import Run
from tsuzuki.model.states import Reason
from tsuzuki.services.logs import LogLine

TAIL_LINES = 500

_RAISED = re.compile(r"([A-Za-z_]\w*)(?:: (.*))?", re.DOTALL)
_FIRST_LINE = re.compile(r"(  \+ Exception Group )?Traceback \(most recent call last\):")
_CHAINED = (
    "The above exception was the direct cause of the following exception:",
    "During handling of the above exception, another exception occurred:",
)


def failure_of(
    run: Run, attempts: Sequence[Run], tail: Callable[[int, int], Sequence[LogLine]]
) -> RunFailed:
    """The error for the caller of work whose last attempt is `run`. `tail` reads the end of a log."""
    name = message = trace = None
    if run.reason is Reason.HANDLER_FAILED and (raised := _RAISED.fullmatch(run.error or "")):
        name, message = raised[1], raised[2] or ""
        stderr = [line.body for line in tail(run.id, TAIL_LINES) if line.stream == "stderr"]
        trace = traceback_in(stderr, name)
    count = len(attempts)
    after = f" after {count} attempts" if count > 1 else ""
    failure = RunFailed(
        f"run {run.id} of {run.job_name} is {run.state}{after}: {run.error or run.reason}",
        hint=f"See: tsuzuki run show {run.id}",
        run=run,
        attempts=attempts,
        exception_name=name,
        exception_message=message,
        traceback=trace,
    )
    if trace is not None:
        failure.add_note(trace)
    return failure


def traceback_in(lines: Sequence[str], name: str) -> str | None:
    """The last traceback that a log ends with, with its chained causes; None if it is not of an exception of this
    name."""
    starts = [number for number, line in enumerate(lines) if _FIRST_LINE.match(line)]
    if not starts:
        return None
    start = starts.pop()
    if not any(line.lstrip(" |").startswith(name) or f".{name}" in line for line in lines[start:]):
        return None
    while starts and lines[start - 2] in _CHAINED:
        start = starts.pop()
    return "\n".join(lines[start:])
