"""Commands as real processes: how they start, what they write, and many at once."""

from pathlib import Path

from support.commands import Commands
from support.executions import Executions, a_task
from tsuzuki.engine.outcome import Failed, StopCause, Stopped, Succeeded
from tsuzuki.model.states import Reason

SUCCEEDED = Succeeded(result={"exit_code": 0})


def failed(error: str, reason: Reason = Reason.HANDLER_FAILED) -> Failed:
    return Failed(reason=reason, error=error)


# --- how it starts --------------------------------------------------------------------------------


def test_a_command_starts_with_no_signal_ignored(commands: Commands) -> None:
    for name in ("TERM", "INT", "HUP", "PIPE"):
        assert commands.run("sh", "-c", f"kill -{name} $$; echo alive")[0] == failed(
            f"ended by signal SIG{name}"
        )


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
    executions.started[0].stop(StopCause.FENCED)
    assert executions.outcome() == Stopped(cause=StopCause.FENCED)


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


def _memory_high_mark_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
