"""A real process that serves the API."""

import re
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.workspace import process_environment


@contextmanager
def serving(
    folder: Path, *words: str, environ: Mapping[str, str] | None = None
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """The process and its address."""
    command = [sys.executable, "-m", "tsuzuki", *words]
    with serving_program(folder, command, environ=environ) as served:
        yield served


@contextmanager
def serving_program(
    folder: Path, command: Sequence[str], *, environ: Mapping[str, str] | None = None
) -> Iterator[tuple["subprocess.Popen[str]", str]]:
    """A serving program that belongs to another installation."""
    with subprocess.Popen(
        command,
        cwd=folder,
        env=process_environment(environ or {}),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        try:
            addresses = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in process.stderr)
            yield process, next(found[0] for found in addresses if found)
        finally:
            process.kill()
