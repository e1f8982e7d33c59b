"""The spec of a command: values that no process can take are refused; long texts go into temporary files."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from support.commands import Commands
from support.executions import a_task
from tsuzuki.engine.outcome import Failed, Succeeded
from tsuzuki.model.states import Reason


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            {"argv": ["echo", "a\0b"]},
            "word 2 of the command contains a NUL character, which cannot be passed to a process",
        ),
        (
            {"argv": ["true"], "environment": {"SECRET": "a\0b"}},
            "environment variable SECRET contains a NUL character, which cannot be passed to a process",
        ),
        (
            {"argv": ["true"], "environment": {"A=B": "c"}},
            "invalid environment variable name 'A=B'",
        ),
        (
            {"argv": ["true", "\ud800"]},
            "word 2 of the command contains characters that cannot be encoded",
        ),
        ({"argv": ["true", 7]}, "word 2 of the command must be text"),
        ({"argv": ["true"], "cwd": "a\0b"}, "`cwd` contains a NUL character"),
        ({"argv": []}, "the job's command must be a list of words, beginning with a program"),
        ({"argv": [""]}, "the job's command must be a list of words, beginning with a program"),
        ({}, "the job's command must be a list of words, beginning with a program"),
    ],
)
def test_what_no_process_can_take_is_refused(
    commands: Commands, options: dict[str, Any], error: str
) -> None:
    outcome, _ = commands.run(task=a_task("command", options))
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.ARGUMENTS_INVALID
    assert outcome.error.startswith(error)


SUCCEEDED = Succeeded(result={"exit_code": 0})


def test_a_huge_payload_comes_in_a_file_that_goes_with_the_run(commands: Commands) -> None:
    event, arguments = {"body": "続" * 50_000}, {"ids": list(range(30_000))}
    script = (
        "import json, os; files = [os.environ[f'TSUZUKI_{n}_FILE'] for n in ('EVENT', 'ARGUMENTS')]\n"
        "for file in files: print(file, oct(os.stat(file).st_mode), "
        "len(str(json.load(open(file, encoding='utf-8')))))"
    )
    task = a_task(
        "command", {"argv": [sys.executable, "-c", script]}, event=event, arguments=arguments
    )
    outcome, run_io = commands.run(task=task)
    assert outcome == SUCCEEDED
    for line, value in zip(run_io.of("stdout"), (event, arguments), strict=True):
        path, mode, length = line.split()
        assert (mode, int(length)) == ("0o100600", len(str(value)))
        assert not Path(path).exists()


HUGE = {"x": "y" * 100_000}


def test_the_files_of_a_command_that_cannot_start_are_removed_too(
    commands: Commands, scratch: Path
) -> None:
    task = a_task("command", {"argv": ["no-such-program"]}, arguments=HUGE)
    assert isinstance(commands.run(task=task)[0], Failed)
    assert list(scratch.iterdir()) == []


def test_bytes_that_are_not_text_reach_the_command_as_they_are(commands: Commands) -> None:
    commands.environ["RAW"] = os.fsdecode(b"\xff\xfe")
    outcome, run_io = commands.run(
        "sh", "-c", 'printf %s%s "$RAW" "$0" | od -An -tx1', os.fsdecode(b"\x80")
    )
    assert (outcome, run_io.of("stdout")) == (SUCCEEDED, [" ff fe 80"])
