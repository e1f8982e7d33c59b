"""Commands as real processes: how they start, what they write, and many at once."""

from pathlib import Path

import pytest

from support.commands import Commands
from support.executions import NOON, Executions, RecordingRunIO, a_task, eventually
from support.supervised_commands import processes_with
from tsuzuki.engine.executors.command import execution
from tsuzuki.engine.executors.command.output import SPACE_POLL_SECONDS
from tsuzuki.engine.outcome import Failed, StopCause, Stopped, Succeeded
from tsuzuki.engine.task import Task
from tsuzuki.engine.worker.run_log import LINE_COST_MIN, RunLog
from tsuzuki.model.settings import EngineSettings
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


def test_a_flood_of_output_neither_fills_memory_nor_hangs_and_its_end_is_kept(
    commands: Commands,
) -> None:
    script = "yes | head -c 200000000; echo end >&2; exit 5"
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest use of memory so far
    before = _memory_high_mark_kib()
    executions = Executions(commands.executor)
    executions.run_io = run_io = BufferedRunIO()
    executions.start(a_task("command", {"argv": ["sh", "-c", script]}))
    assert executions.outcome() == failed("exit code 5: end")
    lines = run_io.end()
    assert lines[-1] == "end"
    assert len(lines) < EngineSettings.log_bytes_max_per_run / LINE_COST_MIN + 3
    assert _memory_high_mark_kib() - before < 32 * 1024 + len(lines) * 400 / 1024


def test_a_command_waits_while_there_is_no_space_for_its_lines(commands: Commands) -> None:
    """Its pipe is not read, so it is still writing."""
    executions = Executions(commands.executor)
    executions.run_io.is_full = True
    executions.start(a_task("command", {"argv": ["sh", "-c", "seq 1 100000; echo done >&2"]}))
    eventually(lambda: any(one.name() == "seq" for one in processes_with("seq 1 100000")))
    assert executions.run_io.lines == []
    assert executions.outcomes == []
    executions.run_io.is_full = False
    assert executions.outcome() == SUCCEEDED
    assert executions.run_io.of("stdout") == [str(number) for number in range(1, 100_001)]


def test_a_command_that_has_ended_waits_for_space_for_its_last_lines(
    commands: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(execution, "OUTPUT_SECONDS_MAX", SPACE_POLL_SECONDS)
    executions = Executions(commands.executor)
    executions.run_io.is_full = True
    executions.start(a_task("command", {"argv": ["sh", "-c", "echo last; exit 3"]}))
    eventually(lambda: executions.run_io.refusals > 10)
    assert executions.outcomes == []
    executions.run_io.is_full = False
    assert executions.outcome() == failed("exit code 3")
    assert executions.run_io.of("stdout") == ["last"]


@pytest.mark.parametrize("script", ["yes", "echo last"])
def test_a_stopped_command_does_not_wait_for_space(commands: Commands, script: str) -> None:
    executions = Executions(commands.executor)
    executions.run_io.is_full = True
    started = executions.start(a_task("command", {"argv": ["sh", "-c", script]}))
    eventually(lambda: executions.run_io.refusals > 2)
    started.stop(StopCause.FENCED)
    assert len(executions.wait_for_all()) == 1


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


class BufferedRunIO(RecordingRunIO):
    """Keeps a log as a worker does, and stores nothing."""

    def __init__(self) -> None:
        super().__init__()
        self._log = RunLog()

    def log(self, task: Task, stream: str, content: str | bytes) -> None:
        cap = EngineSettings.log_bytes_max_per_run
        self.lines.extend(
            (line.stream, line.body) for line in self._log.add(NOON, stream, content, cap=cap)
        )

    def end(self) -> list[str]:
        last = self._log.end(NOON, cap=EngineSettings.log_bytes_max_per_run)
        return [*(body for _, body in self.lines), *(line.body for line in last)]


def _memory_high_mark_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
