"""What came of a run of a feeds job, in sentences on stderr and a table on stdout."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.formatting import format_stored_time
from tsuzuki.cli.terminal.output import Column, emit, say, warn

if TYPE_CHECKING:
    from tsuzuki.model.run import Run

FETCHED = [
    Column("fetched", align="right"),
    Column("unchanged", align="right"),
    Column("failed", align="right"),
    Column("new_items", "NEW ITEMS", align="right"),
    Column("left_out", "LEFT OUT", align="right"),
    Column("unusable", align="right"),
]
PROCESSED = [
    Column("drawn", align="right"),
    Column("posted", align="right"),
    Column("awaiting_approval", "HELD", align="right"),
    Column("put_off", "DEFERRED", align="right"),
    Column("given_up", "GIVEN UP", align="right"),
]
ENDED = [Column("run_id", "RUN"), Column("state"), Column("error")]


def tell_feeds_result(invocation: Invocation, run: "Run") -> None:
    """The figures of fetching and processing, then what needs a person; the error, if the run has failed."""
    result: Mapping[str, Any] = run.result or {}
    fetched: Mapping[str, Any] | None = result.get("fetch")
    processed: Mapping[str, Any] | None = result.get("process")
    if fetched is not None:
        emit(invocation, [fetched], columns=FETCHED)
        for name, error in fetched["errors"].items():
            warn(invocation, f"feed {name} failed: {error}")
    if processed is not None:
        row = {**processed, "put_off": sum(processed["deferred"].values())}
        emit(invocation, [row], columns=PROCESSED)
        for sentence in _sentences(processed):
            say(invocation, sentence)
    if run.error:
        ended = {"run_id": run.id, "state": run.state, "error": run.error}
        emit(invocation, ended, columns=ENDED)


def _sentences(processed: Mapping[str, Any]) -> Iterator[str]:
    for reason, count in processed["deferred"].items():
        yield f"{count} deferred: {reason.replace('_', ' ')}."
    if processed["awaiting_approval"]:
        yield "Held posts wait for approval: tsuzuki feeds items --waiting approval"
    closed: dict[tuple[str, str | None], list[str]] = {}
    for name, closure in processed["closed"].items():
        closed.setdefault((closure["why"], closure["until"]), []).append(name)
    for (why, until), names in closed.items():
        then = f" Continues at {format_stored_time(until)}." if until else ""
        yield f"{', '.join(sorted(names))} stopped for now: {why}.{then}"
