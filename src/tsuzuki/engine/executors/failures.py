"""From the exception of a handler to the failure of its run: an error message, and a traceback for the log."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from traceback import TracebackException

from tsuzuki.engine.outcome import Failed
from tsuzuki.model.errors import TsuzukiError, Unreachable, UsageError
from tsuzuki.model.run_limits import stored_result
from tsuzuki.model.states import Reason

ERROR_CHARACTERS_MAX = 2_000
FRAMES_MAX = 20
LINES_MAX = 200

_EXECUTORS = Path(__file__).parent
_IMPORT_SYSTEM = ("<frozen importlib", importlib.__file__)


def failure_of(problem: BaseException) -> Failed:
    """The failure of a run whose handler raised this. An unreachable database is not the handler's fault:
    whether its writes were committed is unknown, so it is retried like a run whose worker was lost."""
    if isinstance(problem, TsuzukiError):
        is_database = isinstance(problem, Unreachable) and problem.specific_code == "database"
        error = _described(problem)
        try:
            result = stored_result(getattr(problem, "result", None))
        except UsageError as refusal:
            result, error = None, f"{error}. Its result was not stored: {_described(refusal)}"
        return Failed(
            reason=Reason.NOT_CONFIRMED if is_database else Reason.HANDLER_FAILED,
            error=error,
            retry_after_seconds=problem.retry_after_seconds,
            result=result,
        )
    return Failed(reason=Reason.HANDLER_FAILED, error=sentence_of(problem))


def unstorable(problem: UsageError) -> Failed:
    """The failure of a run whose handler returned a result that cannot be stored."""
    error = f"cannot store the function's result: {_described(problem)}"
    return Failed(reason=Reason.HANDLER_FAILED, error=error)


def _described(problem: TsuzukiError) -> str:
    hint = f" ({problem.hint})" if problem.hint else ""
    return f"{problem.specific_code}: {problem.message}{hint}"[:ERROR_CHARACTERS_MAX]


def sentence_of(problem: BaseException) -> str:
    """`ValueError: its message`."""
    name = type(problem).__name__
    try:
        message = str(problem)
    except Exception:  # noqa: BLE001 -- it is the handler's own exception that cannot be printed
        message = "(its message cannot be printed)"
    return (f"{name}: {message}" if message else name)[:ERROR_CHARACTERS_MAX]


def _is_ours(file: str) -> bool:
    """Whether code in this file only led to the handler's."""
    return file.startswith(_IMPORT_SYSTEM) or _EXECUTORS in Path(file).parents


def traceback_lines(problem: BaseException) -> Iterator[str]:
    """The traceback of the handler's own code, without the engine's frames above it; the last lines of it."""
    frames = problem.__traceback__
    while frames is not None and _is_ours(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    summary = TracebackException(type(problem), problem, frames, limit=-FRAMES_MAX, compact=True)
    lines = "".join(summary.format()).splitlines()
    yield from lines[-LINES_MAX:]
