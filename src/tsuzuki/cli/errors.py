"""Map errors to exit codes, and print them.

A failure prints nothing on stdout. On stderr it prints the code, what happened, where, and what to do next; with
JSON output, the same as one object on one line. A traceback is printed only for bugs in Tsuzuki, with --verbose.
"""

import re
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import click
from click.exceptions import Exit, NoArgsIsHelpError, NoSuchOption

from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.terminal.output import echo_error, echo_json_error, is_terminal
from tsuzuki.model.errors import (
    ConfigurationError,
    Conflict,
    FilePlace,
    FileUnusable,
    IncompleteRun,
    Interrupted,
    NotFound,
    NotPermitted,
    ServiceUnreachable,
    TsuzukiError,
    Unreachable,
    UsageError,
    WaitTimedOut,
    WorkFailed,
)
from tsuzuki.model.suggestion import closest, did_you_mean
from tsuzuki.model.visible_text import neutralise

LINE_MAX = 600
"""Characters of a line of a message."""

EXCERPT_MAX = 160
"""Characters of the line of a file that is shown."""

LEAD_MAX = 60
"""Of those, the ones before the column that is pointed at."""


def safe_lines(text: str, hide: Callable[[str], str]) -> list[str]:
    """The lines of an error on a terminal: harmless, without secrets, none longer than a reader can use."""
    return [neutralise(cut_line(line)) for line in hide(text).split("\n")]


def cut_line(line: str) -> str:
    """The line itself, or what its start and its end say and how much is missing between."""
    if len(line) <= LINE_MAX:
        return line
    head, tail = line[: LINE_MAX * 3 // 4], line[-LINE_MAX // 4 :]
    return f"{head} … {len(line) - len(head) - len(tail)} characters … {tail}"


def place_lines(place: FilePlace, hide: Callable[[str], str]) -> Iterator[str]:
    """Where, and the line of the file with a mark under the column."""
    yield f"  --> {neutralise(hide(str(place)))}"
    if place.line is None or place.text is None:
        return
    text = place.text.rstrip("\r\n")
    shown = hide(text)
    column = place.column if shown == text else None
    excerpt, before = _excerpt(shown, (column or 1) - 1)
    yield f"{place.line:>6} | {_untabbed(excerpt)}"
    if column is not None:
        yield f"{'':>6} | {_blanks_like(before)}^"


def _excerpt(text: str, offset: int) -> tuple[str, str]:
    """The part of a line around an offset, and what of it is before the offset."""
    if len(text) <= EXCERPT_MAX:
        return text, text[:offset]
    start = max(0, min(offset - LEAD_MAX, len(text) - EXCERPT_MAX))
    end = start + EXCERPT_MAX
    lead = "…" if start else ""
    return f"{lead}{text[start:end]}{'…' if end < len(text) else ''}", lead + text[start:offset]


def _untabbed(text: str) -> str:
    return neutralise(text.replace("\t", "    "))


def _blanks_like(text: str) -> str:
    """As many blanks as the text takes on a terminal, where some characters take two."""
    from rich.cells import cell_len  # noqa: PLC0415 - only a failure with an excerpt pays for it

    return " " * cell_len(_untabbed(text))


class ExitWith(Exit):
    """End with this code, silently: the result has been printed and says what there is to say."""


class UnexpectedError(TsuzukiError):
    """An exception that was not expected, as an error of our tree."""

    code = "bug"

    def __init__(self, cause: BaseException) -> None:
        super().__init__(
            f"bug in Tsuzuki: {type(cause).__name__}: {cause}",
            hint="Run the command again with --verbose and report the output.",
        )
        self.traceback = "".join(traceback.format_exception(cause))


EXIT_CODES: dict[type[TsuzukiError], int] = {
    TsuzukiError: 1,
    WorkFailed: 1,
    IncompleteRun: 1,
    UsageError: 2,
    ConfigurationError: 3,
    NotFound: 4,
    Unreachable: 5,
    ServiceUnreachable: 8,
    FileUnusable: 74,
    Conflict: 6,
    NotPermitted: 7,
    UnexpectedError: 70,
    WaitTimedOut: 124,
    Interrupted: 130,
}
"""A class that is not listed ends like the nearest of its parents that is."""

EXIT_INTERRUPTED = EXIT_CODES[Interrupted]
EXIT_READER_GONE = 141
"""What a shell reports for a program that SIGPIPE ended, as with `cat file | head`."""


EXIT_CODE_MEANINGS = {
    0: "ok",
    1: "a run failed, or a check found a problem",
    2: "usage",
    3: "invalid configuration",
    4: "not found",
    5: "the database is unreachable or not writable",
    6: "conflict",
    7: "not permitted",
    8: "an outside service refused or is unreachable",
    70: "a bug in Tsuzuki",
    74: "a file cannot be read or written",
    124: "timed out while waiting",
    130: "interrupted",
    141: "the reader of the output closed it (SIGPIPE)",
}
"""Every exit code, as `tsuzuki --help` and docs/guide/running.md list them."""


def exit_code_of(error: TsuzukiError) -> int:
    return next(EXIT_CODES[kind] for kind in type(error).__mro__ if kind in EXIT_CODES)


def report(failure: BaseException, invocation: Invocation) -> int:
    """Tell a failure on stderr and return the exit code, even if stderr is closed."""
    error = as_known_error(failure)
    with suppress(OSError):
        _tell(failure, error, invocation)
    return exit_code_of(error)


def _tell(failure: BaseException, error: TsuzukiError, invocation: Invocation) -> None:
    if invocation.output.is_json:
        echo_json_error({"error": _as_object(error, invocation)})
    elif isinstance(failure, NoArgsIsHelpError):
        echo_error(invocation, failure.format_message())
    else:
        # The terminal has just shown ^C on this line.
        lead = "\n" if isinstance(failure, KeyboardInterrupt) and is_terminal(sys.stderr) else ""
        echo_error(invocation, lead + "\n".join(_as_lines(error, invocation)))


def as_known_error(failure: BaseException) -> TsuzukiError:
    """The same failure as a member of our tree."""
    match failure:
        case TsuzukiError():
            return failure
        case KeyboardInterrupt() | click.Abort():
            return Interrupted("interrupted")
        case NoArgsIsHelpError():
            return UsageError("missing command", hint=_see_help(failure))
        case NoSuchOption():
            return UsageError(
                f"unknown option '{failure.option_name}'",
                hint=_similar_option(failure) or _see_help(failure),
            )
        case click.ClickException():
            hint = _similar_choice(failure) or _see_help(failure)
            return UsageError(failure.format_message(), hint=hint)
        case _:
            return UnexpectedError(failure)


def _similar_option(failure: NoSuchOption) -> str:
    """The option that was probably meant. Compared without the dashes, which all of them share."""
    context = failure.ctx
    parameters = context.command.get_params(context) if context else []
    options = [one for one in parameters if isinstance(one, click.Option)]
    known = {option.lstrip("-"): option for one in options for option in one.opts}
    match = closest(failure.option_name.lstrip("-"), [name for name in known if len(name) > 1])
    return f'Did you mean "{known[match]}"?' if match else ""


def _similar_choice(failure: click.ClickException) -> str:
    """The word that was probably meant, where only some are taken."""
    if not isinstance(failure, click.BadParameter):
        return ""
    kind = failure.param.type if failure.param else None
    said = re.match(r"'(.*)' is not one of", failure.message)
    if not isinstance(kind, click.Choice) or said is None:
        return ""
    words = [kind.normalize_choice(choice, failure.ctx) for choice in kind.choices]
    return did_you_mean(said[1], words).strip()


def _see_help(failure: click.ClickException) -> str | None:
    context = getattr(failure, "ctx", None)
    return f"See: {context.command_path} --help" if context else None


def problems_of(error: TsuzukiError) -> tuple[TsuzukiError, ...]:
    """The single problems that an error gathers, if it gathers any."""
    return getattr(error, "problems", ())


def _as_object(error: TsuzukiError, invocation: Invocation) -> dict[str, Any]:
    told = {
        key: invocation.hide_secrets(value) if isinstance(value, str) else value
        for key, value in error.as_dict().items()
    }
    if problems := problems_of(error):
        told["problems"] = [_as_object(problem, invocation) for problem in problems]
    if isinstance(error, UnexpectedError) and invocation.show_traceback:
        told["traceback"] = invocation.hide_secrets(error.traceback)
    return told


def _as_lines(error: TsuzukiError, invocation: Invocation) -> Iterator[str]:
    """Text from outside is made harmless line by line before any colour is added to it."""
    if not _speaks_through_its_first(error):
        yield from _own_lines(error, invocation.hide_secrets)
    for problem in problems_of(error):
        yield from _as_lines(problem, invocation)
    if isinstance(error, UnexpectedError) and invocation.show_traceback:
        yield from safe_lines(error.traceback, invocation.hide_secrets)


def _speaks_through_its_first(error: TsuzukiError) -> bool:
    """Whether what an error says of itself is what the first of its problems says again."""
    problems = problems_of(error)
    return bool(problems) and error.message.startswith(problems[0].message)


def _own_lines(error: TsuzukiError, hide: Callable[[str], str]) -> Iterator[str]:
    first, *more = safe_lines(error.message, hide)
    yield f"{click.style(f'error[{error.specific_code}]:', fg='red', bold=True)} {first}"
    yield from (f"  {line}" for line in more)
    if error.place:
        yield from place_lines(error.place, hide)
    if error.hint:
        first, *more = safe_lines(error.hint, hide)
        yield f"  {click.style('hint:', fg='cyan')} {first}"
        yield from (f"        {line}" for line in more)
