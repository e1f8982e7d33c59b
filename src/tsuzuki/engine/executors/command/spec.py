"""What a supervisor needs to run a command: arguments, environment and working directory, all checked."""

import json
import os
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tsuzuki.engine.executors.command.environment import (
    Expand,
    WorkerEnvironment,
    checked_variables,
    declared,
    json_variables,
    portable,
    run_variables,
)
from tsuzuki.engine.task import Task
from tsuzuki.model.errors import UsageError

INLINE_BYTES_MAX = 64 * 1024
"""Linux refuses a variable of 128 KiB, and more than 2 MiB in all: a longer text goes into a file."""


@dataclass(frozen=True, kw_only=True)
class CommandSpec:
    """One command. `scratch` are its temporary files; they are removed when it has ended."""

    argv: Sequence[str]
    environment: Mapping[str, str]
    cwd: str
    scratch: Sequence[str] = ()

    def as_bytes(self) -> bytes:
        """For the supervisor, which turns surrogate escapes (what was not UTF-8) back into bytes."""
        return json.dumps(vars(self)).encode("ascii")

    def discard(self) -> None:
        """Remove its temporary files."""
        _remove(self.scratch)


def command_spec_for(
    task: Task,
    *,
    expand: Expand,
    worker: WorkerEnvironment,
    base_folder: Path,
) -> CommandSpec:
    """The spec for this run. Raises `UsageError` for a value that no process can take, and
    `ConfigurationError` for a variable that cannot be expanded."""
    options = task.spec.options
    added = declared(_environment(options), expand=expand, environ=worker.environ)
    variables = {**added, **run_variables(task)}
    texts = json_variables(task)
    long_texts = {n: text for n, text in texts.items() if len(text.encode()) > INLINE_BYTES_MAX}
    short_texts = {n: text for n, text in texts.items() if n not in long_texts}
    spec = CommandSpec(
        argv=_argv(options.get("argv")),
        environment={**worker.inherited, **checked_variables({**variables, **short_texts})},
        cwd=portable(str(base_folder / (options.get("cwd") or "")), "`cwd`"),
    )
    # Last, so that no check can fail after files were made.
    return _with_files(spec, long_texts, run_id=task.run.id) if long_texts else spec


def _argv(argv: object) -> list[str]:
    if not isinstance(argv, list) or not argv or not argv[0]:
        raise UsageError("the job's command must be a list of words, beginning with a program")
    return [portable(word, f"word {number} of the command") for number, word in enumerate(argv, 1)]


def _environment(options: Mapping[str, Any]) -> Mapping[str, str]:
    environment = options.get("environment") or {}
    if not isinstance(environment, Mapping):
        raise UsageError("the job's `environment` must be a mapping of names to text")
    for name, text in environment.items():
        portable(text, f"environment variable {name}")
    return environment


def _with_files(spec: CommandSpec, texts: Mapping[str, str], *, run_id: int) -> CommandSpec:
    """The spec with each text in a temporary file of its own, which only our user can read."""
    files: dict[str, str] = {}
    try:
        for name, text in texts.items():
            handle, path = tempfile.mkstemp(prefix=f"tsuzuki-run-{run_id}-", suffix=".json")
            files[f"{name}_FILE"] = path
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
    except OSError:
        _remove(files.values())
        raise
    environment = {**spec.environment, **files}
    return replace(spec, environment=environment, scratch=list(files.values()))


def _remove(paths: Iterable[str]) -> None:
    for path in paths:
        with suppress(OSError):
            Path(path).unlink()
