"""Commands as real processes: how they start, what they write, how they end."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.commands import Commands
from support.executions import Executions, a_task, open_descriptors
from tsuzuki.engine.outcome import Failed, StopCause, Stopped, Succeeded
from tsuzuki.model.states import Reason

SUCCEEDED = Succeeded(result={"exit_code": 0})


@pytest.fixture(scope="module")
def shared_commands(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Commands]:
    commands = Commands(tmp_path_factory.mktemp("commands") / "workspace")
    yield commands
    commands.executor.close()


@pytest.fixture
def commands(shared_commands: Commands) -> Commands:
    return shared_commands.fresh()


def failed(error: str, reason: Reason = Reason.HANDLER_FAILED) -> Failed:
    return Failed(reason=reason, error=error)


# --- how it ends ----------------------------------------------------------------------------------


def test_a_command_that_exits_with_0_has_succeeded(commands: Commands) -> None:
    assert commands.run("true")[0] == SUCCEEDED


def test_a_failure_has_the_exit_code_and_the_end_of_stderr(commands: Commands) -> None:
    outcome, _ = commands.run(
        "sh", "-c", "echo fine; echo first >&2; echo 'no such book' >&2; exit 3"
    )
    assert outcome == failed("exit code 3: first\nno such book")


def test_a_failure_without_stderr_has_the_exit_code_alone(commands: Commands) -> None:
    assert commands.run("false")[0] == failed("exit code 1")


def test_of_a_long_stderr_only_the_last_whole_lines_are_kept(commands: Commands) -> None:
    outcome, _ = commands.run("sh", "-c", "seq 1 1000 | sed 's/^/line /' >&2; exit 1")
    assert isinstance(outcome, Failed)
    first, *_, last = outcome.error.removeprefix("exit code 1: ").split("\n")
    assert len(outcome.error) < 520
    assert first.startswith("line 9")
    assert last == "line 1000"


def test_a_command_ended_by_a_signal_has_its_name(commands: Commands) -> None:
    assert commands.run("sh", "-c", "kill -SEGV $$")[0] == failed("ended by signal SIGSEGV")


def test_a_signal_without_a_name_has_its_number(commands: Commands) -> None:
    assert commands.run("sh", "-c", "kill -40 $$")[0] == failed("ended by signal 40")


def test_a_command_starts_with_no_signal_ignored(commands: Commands) -> None:
    for name in ("TERM", "INT", "HUP", "PIPE"):
        assert commands.run("sh", "-c", f"kill -{name} $$; echo alive")[0] == failed(
            f"ended by signal SIG{name}"
        )


# --- how it cannot start --------------------------------------------------------------------------


def test_a_program_that_is_not_there_is_named(commands: Commands) -> None:
    outcome, _ = commands.run("no-such-program", "-v")
    assert outcome == failed(
        "the program 'no-such-program', or the one that its #! line names, was not found"
    )


def test_a_file_that_is_not_executable_is_named(commands: Commands) -> None:
    (commands.folder / "notes.txt").write_text("hello")
    assert commands.run("./notes.txt")[0] == failed("'./notes.txt' is not an executable file")


def test_an_executable_file_that_is_no_program_is_named(commands: Commands) -> None:
    (commands.folder / "notes.txt").write_text("hello")
    (commands.folder / "notes.txt").chmod(0o755)
    outcome, _ = commands.run("./notes.txt")
    assert outcome == failed(
        "'./notes.txt' is not a program: its format is unknown and it has no #! line"
    )


def test_a_folder_that_is_not_there_is_named(commands: Commands) -> None:
    outcome, _ = commands.run("true", cwd="missing")
    assert outcome == failed(f"its working directory '{commands.folder}/missing' does not exist")


def test_a_folder_that_is_a_file_is_named(commands: Commands) -> None:
    (commands.folder / "file").touch()
    outcome, _ = commands.run("true", cwd="file")
    assert outcome == failed(f"its working directory '{commands.folder}/file' is not a directory")


def test_arguments_beyond_the_limit_of_the_system_are_a_failure_not_a_crash(
    commands: Commands,
) -> None:
    outcome, _ = commands.run("true", "x" * 3_000_000)
    assert outcome == failed(
        "the arguments and the environment for 'true' are longer than the system allows"
    )


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (
            {"argv": ["echo", "a\0b"]},
            "word 2 of the command contains a NUL character, which no process can take",
        ),
        (
            {"argv": ["true"], "environment": {"SECRET": "a\0b"}},
            "the environment variable SECRET contains a NUL character, which no process can take",
        ),
        (
            {"argv": ["true"], "environment": {"A=B": "c"}},
            "'A=B' cannot be the name of an environment variable",
        ),
        (
            {"argv": ["true", "\ud800"]},
            "word 2 of the command contains characters that cannot be encoded",
        ),
        ({"argv": ["true", 7]}, "word 2 of the command must be text"),
        ({"argv": ["true"], "cwd": "a\0b"}, "`cwd` contains a NUL character, which no process"),
        ({"argv": []}, "the job's command must be a list of words that starts with a program"),
        ({"argv": [""]}, "the job's command must be a list of words that starts with a program"),
        ({}, "the job's command must be a list of words that starts with a program"),
    ],
)
def test_what_no_process_can_take_is_refused(
    commands: Commands, options: dict[str, Any], error: str
) -> None:
    outcome, _ = commands.run(task=a_task("command", options))
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.ARGUMENTS_INVALID
    assert outcome.error.startswith(error)


# --- its output -----------------------------------------------------------------------------------


def test_output_comes_line_by_line_from_both_streams(commands: Commands) -> None:
    _, run_io = commands.run(
        "sh", "-c", r"printf 'one\r\n\ntwo\n'; echo bad >&2; printf unfinished"
    )
    assert run_io.of("stdout") == ["one", "", "two", "unfinished"]
    assert run_io.of("stderr") == ["bad"]


def test_a_line_is_logged_while_the_command_still_runs(commands: Commands) -> None:
    executions = commands.start("sh", "-c", "echo now; sleep 300")
    assert executions.run_io.wait_for(1) == ["now"]
    assert executions.outcomes == []
    executions.started[0].stop(StopCause.CANCELED)
    assert executions.outcome() == Stopped(cause=StopCause.CANCELED)


def test_what_is_not_utf8_is_replaced(commands: Commands) -> None:
    _, run_io = commands.run("printf", r"caf\351 \200\n")
    assert run_io.of("stdout") == ["caf� �"]


def test_a_flood_of_output_neither_fills_memory_nor_hangs(commands: Commands) -> None:
    script = "yes | head -c 200000000; echo end >&2; exit 5"
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest use of memory so far
    before = _memory_high_mark_kib()
    executions = commands.start("sh", "-c", script)
    assert executions.outcome() == failed("exit code 5: end")
    assert executions.run_io.of("stdout")[-1] == "[output limit reached: the rest was dropped]"
    kept_kib = len(executions.run_io.lines) * 200 / 1024
    assert _memory_high_mark_kib() - before < 32 * 1024 + kept_kib


def test_a_flood_without_a_newline_is_cut_into_pieces(commands: Commands) -> None:
    _, run_io = commands.run("sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x")
    assert "".join(run_io.of("stdout")) == "x" * 100_000
    assert max(len(line) for line in run_io.of("stdout")) == 16 * 1024


# --- many -----------------------------------------------------------------------------------------


def test_fifty_commands_run_side_by_side(commands: Commands) -> None:
    executions = Executions(commands.executor)
    tasks = [
        a_task("command", {"argv": ["sh", "-c", "echo $TSUZUKI_RUN_ID"]}, run_id=number)
        for number in range(50)
    ]
    executions.start(*tasks)
    assert dict(executions.wait_for_all()) == dict.fromkeys(range(50), SUCCEEDED)
    assert sorted(map(int, executions.run_io.of("stdout"))) == list(range(50))


def test_an_ended_command_leaves_no_descriptor_open(commands: Commands) -> None:
    commands.run("true")
    before = open_descriptors()
    for _ in range(5):
        commands.run("sh", "-c", "echo hello; exit 1")
        commands.run("no-such-program")
    assert open_descriptors() == before


def _memory_high_mark_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
