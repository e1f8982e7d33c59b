"""The program as a shell meets it: real processes, pipes, signals and a terminal.

Run as a script, this file is `tsuzuki` with the commands below added to its table.
"""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from threading import Event

import click
import pytest

from tsuzuki.cli import main
from tsuzuki.cli.commands import Command, LazyCommand
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.root import COMMANDS
from tsuzuki.cli.terminal.output import Column, emit, say
from tsuzuki.model.errors import NotFound

INSTALLED = Path(sys.executable).with_name("tsuzuki")
ENVIRON = {"PATH": os.environ["PATH"], "TERM": "xterm-256color", "COLUMNS": "80"}
LONG = "x" * 500


@click.command(cls=Command)
@click.pass_obj
def rows(invocation: Invocation) -> None:
    """Print rows with all that is hard to print."""
    state = Column("state", style=lambda value: "red")
    emit(
        invocation,
        [
            {"name": "夜間 [bold]job[/bold] :smile:", "state": "FAILED", "note": "\x1b[2J\udcff"},
            {"name": LONG, "state": "SUCCEEDED", "note": None},
        ],
        columns=[Column("name"), state, Column("note")],
    )


@click.command(cls=Command)
@click.pass_obj
def one(invocation: Invocation) -> None:
    """Print one object."""
    emit(invocation, {"name": "[red]夜間[/red]", "note": LONG})


@click.command(cls=Command)
@click.pass_obj
def endless(invocation: Invocation) -> None:
    """Print rows until the reader is gone."""

    def numbers() -> Iterator[dict[str, int]]:
        for number in count():
            yield {"number": number}

    emit(invocation, numbers())


@click.command(cls=Command)
@click.pass_obj
def wait(invocation: Invocation) -> None:
    """Wait until interrupted."""
    say(invocation, "waiting")
    Event().wait()


@click.command(cls=Command)
def lose() -> None:
    """Fail to find something."""
    raise NotFound("no job '夜間'", hint="see 'tsuzuki job ls'")


def command_line(*words: str) -> list[str]:
    return [sys.executable, __file__, *words]


def run(
    command: list[str], *, cwd: Path | None = None, **environ: str
) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command,
        cwd=cwd,
        env=ENVIRON | environ,
        capture_output=True,
        encoding="utf-8",
        timeout=120,
        check=False,
    )


def run_on_terminal(*words: str, **environ: str) -> str:
    """What a command writes when its stdout is a terminal of 80 columns."""
    ours, theirs = os.openpty()
    with subprocess.Popen(command_line(*words), stdout=theirs, env=ENVIRON | environ) as process:
        os.close(theirs)
        written = b""
        try:
            while piece := os.read(ours, 65536):
                written += piece
        except OSError:  # how Linux says that the other side of a terminal is closed
            pass
        assert process.wait(timeout=120) == 0
    os.close(ours)
    return written.decode().replace("\r\n", "\n")


@pytest.mark.parametrize("command", [[str(INSTALLED)], [sys.executable, "-m", "tsuzuki"]])
def test_the_program_and_the_module_are_the_same(command: list[str]) -> None:
    ended = run([*command, "--help"])
    assert ended.returncode == 0
    assert ended.stdout.startswith("Usage: tsuzuki [OPTIONS] COMMAND")
    assert ended.stderr == ""


def test_help_loads_nothing_heavy() -> None:
    heavy = {
        "sqlalchemy",
        "alembic",
        "pydantic",
        "yaml",
        "structlog",
        "rich",
        "prometheus_client",
    }
    code = (
        "import sys; from tsuzuki.cli import run_cli; run_cli(['--help']);"
        f"sys.exit(', '.join(sys.modules.keys() & {heavy!r}))"
    )
    ended = run([sys.executable, "-c", code])
    assert ended.stderr.strip() == ""


def test_a_command_on_a_database_that_is_up_to_date_loads_nothing_that_brings_it_there(
    tmp_path: Path,
) -> None:
    code = (
        "import sys; from tsuzuki.cli import run_cli; run_cli(['job', 'ls', '--quiet']);"
        "sys.exit('alembic' if 'alembic' in sys.modules else 0)"
    )
    assert run([str(INSTALLED), "init"], cwd=tmp_path).returncode == 0
    assert run([str(INSTALLED), "job", "ls"], cwd=tmp_path).returncode == 0
    assert run([sys.executable, "-c", code], cwd=tmp_path).returncode == 0


def test_a_command_that_starts_no_engine_does_not_load_what_an_engine_logs_with(
    tmp_path: Path,
) -> None:
    code = (
        "import sys; from tsuzuki.cli import run_cli; run_cli(['commits', 'stats', '--quiet']);"
        "sys.exit(', '.join(sys.modules.keys() & {'structlog', 'rich'}))"
    )
    assert run([str(INSTALLED), "init"], cwd=tmp_path).returncode == 0
    ended = run([sys.executable, "-c", code], cwd=tmp_path)
    assert ended.stderr.strip() == ""


def test_a_mistake_ends_with_2_and_a_missing_thing_with_4_and_both_leave_stdout_empty() -> None:
    usage, missing = run([str(INSTALLED), "--bogus"]), run(command_line("lose"))
    assert (usage.returncode, usage.stdout) == (2, "")
    assert (missing.returncode, missing.stdout) == (4, "")
    assert missing.stderr == "error[not_found]: no job '夜間'\n  hint: see 'tsuzuki job ls'\n"


def test_a_json_error_is_the_only_thing_on_stderr() -> None:
    ended = run(command_line("lose", "--output", "json"))
    assert (ended.returncode, ended.stdout) == (4, "")
    assert json.loads(ended.stderr)["error"]["message"] == "no job '夜間'"


def test_a_piped_table_is_neither_cut_nor_wrapped_nor_coloured() -> None:
    ended = run(command_line("rows"))
    heading, first, second = ended.stdout.splitlines()
    assert heading.split() == ["NAME", "STATE", "NOTE"]
    assert first.startswith("夜間 [bold]job[/bold] :smile:  ")
    assert first.endswith("  FAILED     \\x1b[2J\\udcff")
    assert second == f"{LONG}  SUCCEEDED  -"


def test_a_table_on_a_terminal_is_folded_not_cut_and_takes_no_markup_from_data() -> None:
    shown = run_on_terminal("rows", "--no-color")
    assert shown.count("x") == len(LONG) + 1  # and that of the escape in the note
    assert "[bold]job[/bold]" in shown
    assert ":smile:" in shown
    assert "\\x1b[2J" in shown.replace("\n", "")
    assert all(len(line) <= 80 for line in shown.splitlines())


def test_an_object_on_a_terminal_has_one_field_below_the_other() -> None:
    first, *note = run_on_terminal("one", NO_COLOR="1").splitlines()
    assert first.rstrip() == "NAME  [red]夜間[/red]"
    assert note[0].startswith("NOTE  xxx")
    assert "".join(note).count("x") == len(LONG)


def test_a_terminal_is_coloured_unless_it_is_switched_off() -> None:
    assert "\x1b[31mFAILED" in run_on_terminal("rows")
    assert "\x1b" not in run_on_terminal("rows", NO_COLOR="1")
    assert "\x1b" not in run_on_terminal("--no-color", "rows")


def test_a_reader_who_leaves_ends_the_command_in_silence() -> None:
    with subprocess.Popen(
        command_line("endless", "-o", "jsonl"),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=ENVIRON,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert json.loads(process.stdout.readline()) == {"number": 0}
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=120) == 141


def test_an_interrupt_ends_with_130_and_no_traceback() -> None:
    with subprocess.Popen(
        command_line("wait"), stderr=subprocess.PIPE, encoding="utf-8", env=ENVIRON
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "waiting\n"
        process.send_signal(signal.SIGINT)
        assert process.stderr.read() == "error[interrupted]: interrupted\n"
        assert process.wait(timeout=120) == 130


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [("rows",), ("completion", "bash"), ("config", "schema")])
def test_a_full_disk_is_told_once(words: tuple[str, ...]) -> None:
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            command_line(*words),
            stdout=full,
            stderr=subprocess.PIPE,
            encoding="utf-8",
            env=ENVIRON,
            timeout=120,
            check=False,
        )
    assert ended.returncode == 74
    assert ended.stderr.startswith("error[output_unwritable]: cannot write the output: No space")
    assert "Exception ignored" not in ended.stderr


def test_a_closed_stdout_is_no_bug() -> None:
    ended = run(["sh", "-c", 'exec "$@" >&-', "sh", *command_line("rows")])
    assert (ended.returncode, ended.stderr) == (0, "")


def test_json_survives_a_terminal_that_knows_only_latin_letters() -> None:
    ended = run(command_line("rows", "-o", "json"), PYTHONIOENCODING="latin-1")
    assert ended.stdout.isascii()
    assert json.loads(ended.stdout)[0]["name"].startswith("夜間")
    ended = run(command_line("rows"), PYTHONIOENCODING="latin-1")
    assert (ended.returncode, ended.stderr) == (0, "")
    assert "\\u591c\\u9593" in ended.stdout


if __name__ == "__main__":
    for name in ("rows", "one", "endless", "wait", "lose"):
        COMMANDS[name] = LazyCommand(f"__main__:{name}", name)
    main()
