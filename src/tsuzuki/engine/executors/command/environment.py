"""The environment variables of a command: the worker's own, those its job adds, and those that name its run.

Secrets of Tsuzuki and of its configuration are not inherited; a job that needs one names it.
"""

import os
from collections.abc import Callable, Collection, Iterable, Mapping
from urllib.parse import unquote, urlsplit

from tsuzuki.engine.task import Task
from tsuzuki.model.errors import ConfigurationError, TsuzukiError, UsageError
from tsuzuki.model.jsontext import encode
from tsuzuki.model.secrets import MASK, mask_secrets

Expand = Callable[[str, Mapping[str, str]], str]
"""Expands each `${NAME}` of a text from an environment; raises `TsuzukiError` if it cannot."""

_PREFIX = "TSUZUKI_"
_SECRETS = frozenset({"TSUZUKI_DATABASE_URL", "TSUZUKI_DATABASE_DIRECT_URL", "TSUZUKI_REDIS_URL"})
_SECRET_SUFFIXES = ("_FILE", "_KEY", "_PASSWORD", "_SECRET", "_TOKEN")
_OF_THE_PROCESS = frozenset({"NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"})
"""What a service manager tells the worker itself: a command is no service of its own."""
_RUN_NAMES = frozenset(
    f"{_PREFIX}{name}" for name in "RUN_ID JOB ATTEMPT SCHEDULED_FOR ARGUMENTS EVENT".split()
)


def inherited(environ: Mapping[str, str], *, secret_names: Collection[str] = ()) -> dict[str, str]:
    """The variables a command inherits from the worker: all but Tsuzuki's secrets and `secret_names`.

    Those that name a run are left out too: the worker may itself have been started by a command.
    """
    return {
        name: value
        for name, value in environ.items()
        if name not in secret_names and not _is_withheld(name)
    }


def secret_values(
    environ: Mapping[str, str], *, secret_names: Collection[str] = ()
) -> frozenset[str]:
    """The values of the variables that are secrets: of Tsuzuki, and of `secret_names`."""
    return frozenset(
        value
        for name, value in environ.items()
        if not name.endswith("_FILE") and (name in secret_names or _is_secret(name))
    )


class WorkerEnvironment:
    """The environment of the worker, checked once for all its commands."""

    def __init__(
        self,
        environ: Mapping[str, str],
        *,
        secret_names: Collection[str] = (),
        more_secrets: Iterable[str] = (),
    ) -> None:
        self.environ = environ
        self.inherited = checked_variables(inherited(environ, secret_names=secret_names))
        known = secret_values(environ, secret_names=secret_names)
        self.mask = OutputMask({*known, *more_secrets})


def declared(
    environment: Mapping[str, str], *, expand: Expand, environ: Mapping[str, str]
) -> dict[str, str]:
    """The variables the job adds, expanded. Raises `ConfigurationError` with the name, never the value."""
    expanded = {}
    for name, text in environment.items():
        try:
            expanded[name] = expand(text, environ)
        except TsuzukiError as problem:
            raise ConfigurationError(
                f"`environment`, {name}: {problem.message}",
                hint=problem.hint,
                code=problem.specific_code,
            ) from None
    return expanded


def run_variables(task: Task) -> dict[str, str]:
    """The variables that name the run."""
    run = task.run
    return {
        "TSUZUKI_RUN_ID": str(run.id),
        "TSUZUKI_JOB": task.job_name,
        "TSUZUKI_ATTEMPT": str(run.attempt),
        "TSUZUKI_IDEMPOTENCY_KEY": task.idempotency_key,
        "TSUZUKI_SCHEDULED_FOR": run.scheduled_for.isoformat().replace("+00:00", "Z"),
    }


def json_variables(task: Task) -> dict[str, str]:
    """The run's arguments and event as JSON, however long."""
    variables = {"TSUZUKI_ARGUMENTS": encode(dict(task.run.arguments))}
    if task.event is not None:
        variables["TSUZUKI_EVENT"] = encode(task.event)
    return variables


def _is_withheld(name: str) -> bool:
    return name in _RUN_NAMES or name in _OF_THE_PROCESS or _is_secret(name)


def _is_secret(name: str) -> bool:
    return name in _SECRETS or (name.startswith(_PREFIX) and name.endswith(_SECRET_SUFFIXES))


def checked_variables(environment: Mapping[str, str]) -> dict[str, str]:
    for name in environment:
        if not name or "=" in name:
            raise UsageError(f"invalid environment variable name {name!r}")
    return {
        portable(name, "the name of an environment variable"): portable(
            value, f"environment variable {name}"
        )
        for name, value in environment.items()
    }


def portable(text: object, what: str) -> str:
    """`text` as the operating system encodes it, in a form that JSON can carry. The text itself may be a
    secret, so it is never part of the error."""
    if not isinstance(text, str):
        raise UsageError(f"{what} must be text")
    if "\0" in text:
        raise UsageError(f"{what} contains a NUL character, which cannot be passed to a process")
    if text.isascii():
        return text  # every encoding that a process can have is the same there
    try:
        return os.fsencode(text).decode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        raise UsageError(f"{what} contains characters that cannot be encoded") from None


SECRET_CHARACTERS_MIN = 6
"""A shorter value is part of too many words, and no secret."""


class OutputMask:
    """Masks values as they are; of a value with several lines each line, of a URL its password too."""

    def __init__(self, values: Iterable[str]) -> None:
        parts = {part for value in values for part in _parts(value)}
        # The longest first: one secret may contain another.
        self._secrets = [
            part.encode("utf-8", "surrogateescape")
            for part in sorted(parts, key=len, reverse=True)
            if len(part) >= SECRET_CHARACTERS_MIN
        ]

    def __call__(self, output: bytes) -> bytes:
        for secret in self._secrets:
            output = output.replace(secret, MASK.encode())
        return output


def _parts(value: str) -> Iterable[str]:
    if "://" in value and mask_secrets(value) == value:
        return  # a URL without a password
    yield from (line.strip() for line in value.splitlines())
    try:
        password = urlsplit(value).password
    except ValueError:  # it is no URL
        return
    if password:
        yield from (password, unquote(password))
