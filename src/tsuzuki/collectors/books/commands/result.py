"""The result of a books run, as sentences on stderr and a table on stdout."""

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.formatting import format_stored_time
from tsuzuki.cli.terminal.output import Column, emit, say, warn

if TYPE_CHECKING:
    from tsuzuki.model.run import Run

COLLECTED = [
    Column("pages", align="right"),
    Column("returned", align="right"),
    Column("new_books", "NEW BOOKS", align="right"),
    Column("start_index", "NEXT INDEX", align="right"),
    Column("stop_reason", "STOPPED BY"),
]
ENDED = [Column("run_id", "RUN"), Column("state"), Column("error")]


def tell_books_result(invocation: Invocation, run: "Run") -> None:
    """Sentences, then the figures of the collection; the error, if it has failed."""
    result: Mapping[str, Any] = run.result or {}
    collected: Mapping[str, Any] = result.get("collect") or {}
    for sentence in _sentences(run.job_name, collected, result.get("mail")):
        say(invocation, sentence)
    unsettled = (result.get("mail") or {}).get("unsettled") or []
    if unsettled:
        named = ", ".join(map(str, unsettled))
        warn(
            invocation,
            f"it is unknown whether email {named} arrived: check, then use: tsuzuki books mail "
            f"--mark-sent {unsettled[0]} --yes, or: tsuzuki books mail --resend {unsettled[0]} "
            "--yes",
        )
    if collected.get("stop_reason"):
        emit(invocation, [collected], columns=COLLECTED)
    if run.error:
        ended = {"run_id": run.id, "state": run.state, "error": run.error}
        emit(invocation, ended, columns=ENDED)


def _sentences(
    job_name: str, collected: Mapping[str, Any], mail: Mapping[str, Any] | None
) -> Iterator[str]:
    if collected.get("skipped"):
        yield _skipped(job_name, str(collected["skipped"]))
    elif collected:
        yield (
            f"Collected {_counted(collected['returned'], 'result')} on "
            f"{_counted(collected['pages'], 'page')}; {_counted(collected['new_books'], 'new book')}."
        )
        yield _stopped(job_name, collected)
    if mail is not None:
        sent = ", ".join(map(str, mail["mails"]))
        yield f"Email {sent} was accepted by the server." if sent else "No email was sent."


def _skipped(job_name: str, reason: str) -> str:
    if reason == "exhausted":
        return (
            "Nothing was collected because the search is exhausted. Restart it with: tsuzuki "
            f"job cursor reset {job_name} --yes"
        )
    return "Nothing was collected because another run is collecting this search."


def _stopped(job_name: str, collected: Mapping[str, Any]) -> str:
    at = collected["start_index"]
    match collected["stop_reason"]:
        case "max_per_run":
            return f"max_per_run is reached; the next run of {job_name} continues at index {at}."
        case "quota" if collected["resumes_at"] is None:
            return f"Today's quota is used up; the next run of {job_name} continues at index {at}."
        case "quota":
            moment = format_stored_time(collected["resumes_at"])
            return f"Today's quota is used up; collection continues at index {at} at {moment}."
        case "exhausted":
            return f"The search is exhausted at index {at}: there are no more results."
        case reason:
            return f"The collection stopped at index {at}: {reason}."


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
