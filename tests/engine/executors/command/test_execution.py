"""From exit codes, signals and errors at the start to the outcome of the run, with a readable error."""

import os
import sys
from pathlib import Path

from support.commands import Commands
from support.executions import Executions, a_task
from tsuzuki.config import expand
from tsuzuki.engine.executors.command.executor import CommandExecutor
from tsuzuki.engine.outcome import Failed, Succeeded
from tsuzuki.model.states import Reason

SUCCEEDED = Succeeded(result={"exit_code": 0})


def failed(error: str, reason: Reason = Reason.HANDLER_FAILED) -> Failed:
    return Failed(reason=reason, error=error)


def test_a_command_that_exits_with_0_has_succeeded(commands: Commands) -> None:
    assert commands.run("true")[0] == SUCCEEDED


def test_a_failure_has_the_exit_code_and_the_line_that_names_the_cause(commands: Commands) -> None:
    outcome, _ = commands.run(
        "sh", "-c", "echo fine; echo first >&2; echo 'no such book' >&2; exit 3"
    )
    assert outcome == failed("exit code 3: no such book")


def test_a_failure_without_stderr_has_the_exit_code_alone(commands: Commands) -> None:
    assert commands.run("false")[0] == failed("exit code 1")


def test_of_a_traceback_the_exception_is_the_error(commands: Commands) -> None:
    code = "def f(n):\n    if n:\n        return f(n - 1)\n    raise KeyError('customer_id')\nf(20)"
    outcome, _ = commands.run(sys.executable, "-c", code)
    assert outcome == failed("exit code 1: KeyError: 'customer_id'")


def test_an_overlong_line_is_cut(commands: Commands) -> None:
    outcome, _ = commands.run("sh", "-c", "printf 'x%.0s' $(seq 1 20000) >&2; exit 1")
    assert outcome == failed("exit code 1: " + "x" * 500)


def test_a_command_ended_by_a_signal_has_its_name(commands: Commands) -> None:
    assert commands.run("sh", "-c", "kill -SEGV $$")[0] == failed("ended by signal SIGSEGV")


def test_a_signal_without_a_name_has_its_number(commands: Commands) -> None:
    assert commands.run("sh", "-c", "kill -40 $$")[0] == failed("ended by signal 40")


def test_a_program_that_is_not_there_is_named(commands: Commands) -> None:
    outcome, _ = commands.run("no-such-program", "-v")
    assert outcome == failed(
        "program 'no-such-program', or the interpreter in its #! line, was not found",
        Reason.HANDLER_UNKNOWN,
    )


def test_a_file_that_is_not_executable_is_named(commands: Commands) -> None:
    (commands.folder / "notes.txt").write_text("hello")
    outcome, _ = commands.run("./notes.txt")
    error = "'./notes.txt' is not executable (use chmod +x)"
    assert outcome == failed(error, Reason.HANDLER_UNKNOWN)


def test_an_executable_file_that_is_no_program_is_named(commands: Commands) -> None:
    (commands.folder / "notes.txt").write_text("hello")
    (commands.folder / "notes.txt").chmod(0o755)
    outcome, _ = commands.run("./notes.txt")
    assert outcome == failed(
        "'./notes.txt' is not a program: unknown format and no #! line",
        Reason.HANDLER_UNKNOWN,
    )


def test_a_folder_that_is_not_there_is_named(commands: Commands) -> None:
    outcome, _ = commands.run("true", cwd="missing")
    assert outcome == failed(f"working directory '{commands.folder}/missing' does not exist")


def test_a_folder_that_is_a_file_is_named(commands: Commands) -> None:
    (commands.folder / "file").touch()
    outcome, _ = commands.run("true", cwd="file")
    assert outcome == failed(f"working directory '{commands.folder}/file' is not a directory")


def test_arguments_beyond_the_limit_of_the_system_are_a_failure_not_a_crash(
    commands: Commands,
) -> None:
    outcome, _ = commands.run("true", "x" * 3_000_000)
    assert outcome == failed("arguments and environment of 'true' exceed the system's limit")


def test_a_program_is_looked_for_in_every_folder_of_the_path(commands: Commands) -> None:
    for name, mode in (("first", 0o644), ("second", 0o755)):
        (commands.folder / name).mkdir()
        (commands.folder / name / "tool").write_text("#!/bin/sh\n")
        (commands.folder / name / "tool").chmod(mode)
    path = f"{commands.folder}/first:{commands.folder}/second"
    outcome, _ = commands.run("tool", "x" * 3_000_000, environment={"PATH": path})
    assert outcome == failed("arguments and environment of 'tool' exceed the system's limit")


def test_known_secrets_are_masked_in_the_error_and_in_the_log(commands: Commands) -> None:
    commands.environ["TSUZUKI_API_TOKEN"] = "hunter2-hunter2"
    commands.environ["TSUZUKI_DATABASE_URL"] = "postgresql://u:p%40ssword@h/d"
    outcome, run_io = commands.run(
        "sh",
        "-c",
        'echo "$TOKEN"; echo "$TOKEN p@ssword https://u:other@h/" >&2; exit 3',
        environment={"TOKEN": "${TSUZUKI_API_TOKEN}"},
    )
    assert outcome == failed("exit code 3: *** *** https://u:***@h/")
    assert run_io.of("stdout") == ["***"]
    assert run_io.of("stderr") == ["*** *** https://u:other@h/"]


def test_the_secrets_of_the_configuration_are_masked_line_by_line(tmp_path: Path) -> None:
    executor = CommandExecutor(
        expand=expand,
        base_folder=tmp_path,
        kill_grace_seconds=lambda: 60.0,
        environ={"PATH": os.environ["PATH"], "KEY": "-----first\nsecond line", "SHORT": "ok"},
        secret_names={"KEY", "SHORT"},
    )
    executions = Executions(executor)
    options = {
        "argv": ["sh", "-c", 'echo "$KEY $SHORT"'],
        "environment": {"KEY": "${KEY}", "SHORT": "ok"},
    }
    executions.start(a_task("command", options))
    assert executions.outcome() == SUCCEEDED
    executor.close()
    assert executions.run_io.of("stdout") == ["***", "*** ok"]
