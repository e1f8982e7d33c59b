"""A workspace for CLI tests: commands run in this process, or in one of their own."""

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

import pytest

from support.forked_program import ForkedProgram
from tsuzuki.cli import run_cli
from tsuzuki.wiring.application import opened

PROGRAM = Path(sys.executable).with_name("tsuzuki")


@dataclass(frozen=True)
class Ended:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def data(self) -> Any:
        """The JSON output."""
        return json.loads(self.out)

    @property
    def error(self) -> dict[str, Any]:
        """The JSON error; there is no other output then."""
        assert self.out == ""
        error: dict[str, Any] = json.loads(self.err)["error"]
        return error


class Workspace:
    """A folder, and commands run in it. They see nothing of the tester's environment."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.folder = folder
        self.file = folder / "tsuzuki.yaml"
        self.database = folder / "tsuzuki.db"
        self.capsys = capsys

    def run(self, *words: str, **environ: str) -> Ended:
        """A command in this process."""
        self.capsys.readouterr()
        code = run_cli(words, environ=environ, cwd=self.folder)
        return Ended(code, *self.capsys.readouterr())

    def ok(self, *words: str, **environ: str) -> Ended:
        """A command that must succeed."""
        ended = self.run(*words, **environ)
        assert ended.code == 0, ended.err
        return ended

    def data(self, *words: str, **environ: str) -> Any:
        """The JSON output of a command that must succeed, with nothing on stderr."""
        ended = self.ok(*words, "--output", "json", **environ)
        assert ended.err == "", ended.err
        return ended.data

    def process(self, *words: str, **environ: str) -> Ended:
        """A command in its own process."""
        ended = subprocess.run(
            [PROGRAM, *words],
            cwd=self.folder,
            env=process_environment(environ),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            encoding="utf-8",
            timeout=120,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def start(self, *words: str, **environ: str) -> ForkedProgram:
        """Start a command in its own process and discard its output."""
        return ForkedProgram(words, cwd=self.folder, env=process_environment(environ))

    def forked(self, *words: str, **environ: str) -> Ended:
        """A command in its own process, which has the imports of another: for many commands, or slow ones."""
        with (
            TemporaryFile("w+", encoding="utf-8") as out,
            TemporaryFile("w+", encoding="utf-8") as err,
        ):
            env = process_environment(environ)
            code = ForkedProgram(words, cwd=self.folder, env=env, stdout=out, stderr=err).wait(120)
            out.seek(0)
            err.seek(0)
            return Ended(code, out.read(), err.read())

    def job(self, name: str) -> dict[str, Any]:
        job: dict[str, Any] = self.data("job", "show", name)
        return job

    def define(self, name: str, body: Mapping[str, Any]) -> None:
        """Define a job in the database only, as the API does."""
        with opened(cwd=self.folder, environ={}, actor="api:bob") as application:
            application.jobs.define(name, body)

    def append(self, text: str) -> None:
        """Change the file, as an editor would."""
        self.file.write_text(self.file.read_text() + text)

    def content(self) -> dict[str, bytes]:
        """Every file and its bytes, without the lock file, which is never deleted."""
        return {
            str(path.relative_to(self.folder)): path.read_bytes()
            for path in sorted(self.folder.rglob("*"))
            if path.is_file() and not path.name.endswith(".lock")
        }


def process_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "LOGNAME": "alice", **environ}
