"""Commands as real processes: how they start, what they say, how they end."""

import json
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.executions import Begun, Ears, a_task
from tsuzuki.config.variables import expand
from tsuzuki.engine.executors.command import CommandExecutor
from tsuzuki.engine.outcome import Failed, Outcome, Succeeded
from tsuzuki.engine.task import Task
from tsuzuki.model.states import Reason

SUCCEEDED = Succeeded(result={"exit_code": 0})


@pytest.fixture
def environ() -> dict[str, str]:
    return {"PATH": os.environ["PATH"], "HOME": "/nowhere"}


@pytest.fixture
def executor(tmp_path: Path, environ: dict[str, str]) -> Iterator[CommandExecutor]:
    executor = CommandExecutor(
        expand=expand, base_folder=tmp_path, kill_grace_seconds=lambda: 60.0, environ=environ
    )
    yield executor
    executor.close()


@pytest.fixture
def run(executor: CommandExecutor) -> Callable[..., tuple[Outcome, Ears]]:
    def run(*argv: str, task: Task | None = None, **options: Any) -> tuple[Outcome, Ears]:
        begun = Begun(executor)
        begun.begin(task or a_task("command", {"argv": list(argv), **options}))
        return begun.outcome(), begun.ears

    return run


Run = Callable[..., tuple[Outcome, Ears]]


def failed(error: str, reason: Reason = Reason.HANDLER_FAILED) -> Failed:
    return Failed(reason=reason, error=error)


# --- how it ends ----------------------------------------------------------------------------------


def test_a_command_that_exits_with_0_has_succeeded(run: Run) -> None:
    assert run("true")[0] == SUCCEEDED


def test_a_failure_tells_the_exit_code_and_the_last_words(run: Run) -> None:
    outcome, _ = run("sh", "-c", "echo fine; echo first >&2; echo 'no such book' >&2; exit 3")
    assert outcome == failed("exit code 3: first\nno such book")


def test_a_failure_without_words_tells_the_exit_code_alone(run: Run) -> None:
    assert run("false")[0] == failed("exit code 1")


def test_of_many_last_words_only_whole_lines_are_told(run: Run) -> None:
    outcome, _ = run("sh", "-c", "seq 1 1000 | sed 's/^/line /' >&2; exit 1")
    assert isinstance(outcome, Failed)
    first, *_, last = outcome.error.removeprefix("exit code 1: ").split("\n")
    assert len(outcome.error) < 520
    assert first.startswith("line 9")
    assert last == "line 1000"


def test_a_command_ended_by_a_signal_tells_its_name(run: Run) -> None:
    assert run("sh", "-c", "kill -SEGV $$")[0] == failed("ended by signal SIGSEGV")


def test_a_signal_without_a_name_is_told_by_number(run: Run) -> None:
    assert run("sh", "-c", "kill -40 $$")[0] == failed("ended by signal 40")


def test_a_command_starts_with_no_signal_ignored(run: Run) -> None:
    for name in ("TERM", "INT", "HUP", "PIPE"):
        assert run("sh", "-c", f"kill -{name} $$; echo alive")[0] == failed(
            f"ended by signal SIG{name}"
        )


# --- how it cannot start --------------------------------------------------------------------------


def test_a_program_that_is_not_there_is_named(run: Run) -> None:
    outcome, _ = run("no-such-program", "-v")
    assert outcome == failed(
        "the program 'no-such-program', or the one that its #! line names, was not found"
    )


def test_a_file_that_is_not_executable_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    assert run("./notes.txt")[0] == failed("'./notes.txt' is not an executable file")


def test_an_executable_file_that_is_no_program_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "notes.txt").chmod(0o755)
    outcome, _ = run("./notes.txt")
    assert outcome == failed(
        "'./notes.txt' is not a program: its format is unknown and it has no #! line"
    )


def test_a_folder_that_is_not_there_is_named(run: Run, tmp_path: Path) -> None:
    outcome, _ = run("true", cwd="missing")
    assert outcome == failed(
        f"the folder '{tmp_path}/missing', in which it shall run, does not exist"
    )


def test_a_folder_that_is_a_file_is_named(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    outcome, _ = run("true", cwd="file")
    assert outcome == failed(f"'{tmp_path}/file', in which it shall run, is not a folder")


def test_words_beyond_the_limit_of_the_system_are_a_failure_not_a_crash(run: Run) -> None:
    outcome, _ = run("true", "x" * 3_000_000)
    assert outcome == failed(
        "the words and the environment for 'true' are longer than the system allows"
    )


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (
            {"argv": ["echo", "a\0b"]},
            "word 2 of the command contains a NUL character, which no process can be given",
        ),
        (
            {"argv": ["true"], "environment": {"SECRET": "a\0b"}},
            "the environment variable SECRET contains a NUL character, "
            "which no process can be given",
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
        ({"argv": []}, "the job's command must be a list of words that begins with a program"),
        ({"argv": [""]}, "the job's command must be a list of words that begins with a program"),
        ({}, "the job's command must be a list of words that begins with a program"),
    ],
)
def test_what_no_process_can_be_given_is_refused(
    run: Run, options: dict[str, Any], sentence: str
) -> None:
    outcome, _ = run(task=a_task("command", options))
    assert isinstance(outcome, Failed)
    assert outcome.reason is Reason.ARGUMENTS_INVALID
    assert outcome.error.startswith(sentence)


# --- what it is given -----------------------------------------------------------------------------


def environment_of(run: Run, task: Task) -> dict[str, str]:
    outcome, ears = run(task=task)
    assert outcome == SUCCEEDED
    return dict(line.split("=", 1) for line in ears.of("stdout"))


def test_a_command_knows_which_run_it_works_for(run: Run) -> None:
    task = a_task(
        "command",
        {"argv": ["env"]},
        run_id=12,
        origin_id=10,
        attempt=3,
        arguments={"title": "続き"},
        event={"type": "new"},
    )
    found = environment_of(run, task)
    assert {name: value for name, value in found.items() if name.startswith("TSUZUKI_")} == {
        "TSUZUKI_RUN_ID": "12",
        "TSUZUKI_JOB": "hello",
        "TSUZUKI_ATTEMPT": "3",
        "TSUZUKI_IDEMPOTENCY_KEY": "run-10",
        "TSUZUKI_SCHEDULED_FOR": "2026-03-01T12:00:00Z",
        "TSUZUKI_ARGUMENTS": '{"title":"続き"}',
        "TSUZUKI_EVENT": '{"type":"new"}',
    }


def test_a_command_inherits_the_environment_and_its_job_adds_to_it(
    run: Run, environ: dict[str, str]
) -> None:
    environ["TOKEN"] = "s3cret"
    options = {
        "argv": ["env"],
        "environment": {"HOME": "/here", "AUTH": "Bearer ${TOKEN}", "PRICE": "$$5"},
    }
    found = environment_of(run, a_task("command", options))
    assert found["PATH"] == environ["PATH"]
    assert found["HOME"] == "/here"
    assert found["AUTH"] == "Bearer s3cret"
    assert found["PRICE"] == "$5"


def test_a_missing_variable_is_named_and_nothing_is_run(run: Run, tmp_path: Path) -> None:
    outcome, _ = run("touch", "ran", environment={"AUTH": "Bearer ${TOKEN}"})
    assert outcome == failed("`environment`, AUTH: the environment variable TOKEN is not set")
    assert not (tmp_path / "ran").exists()


def test_what_tsuzuki_is_told_in_secret_is_not_passed_on(run: Run, environ: dict[str, str]) -> None:
    secrets = {
        "TSUZUKI_DATABASE_URL": "postgresql://u:p@h/d",
        "TSUZUKI_REDIS_URL": "redis://:p@h",
        "TSUZUKI_DATABASE_URL_FILE": "/run/secrets/url",
        "TSUZUKI_API_TOKEN": "t",
    }
    environ.update(secrets, TSUZUKI_CONFIG="tsuzuki.yaml")
    found = environment_of(run, a_task("command", {"argv": ["env"]}))
    assert not found.keys() & secrets.keys()
    assert found["TSUZUKI_CONFIG"] == "tsuzuki.yaml"


def test_a_job_that_names_such_a_secret_gets_it(run: Run, environ: dict[str, str]) -> None:
    environ["TSUZUKI_DATABASE_URL"] = "sqlite:///x.db"
    options = {
        "argv": ["env"],
        "environment": {"TSUZUKI_DATABASE_URL": "${TSUZUKI_DATABASE_URL}"},
    }
    found = environment_of(run, a_task("command", options))
    assert found["TSUZUKI_DATABASE_URL"] == "sqlite:///x.db"


def test_a_worker_inside_a_run_does_not_pass_that_run_on(run: Run, environ: dict[str, str]) -> None:
    environ.update(TSUZUKI_EVENT='{"of":"another run"}', TSUZUKI_RUN_ID="99")
    found = environment_of(run, a_task("command", {"argv": ["env"]}))
    assert "TSUZUKI_EVENT" not in found
    assert found["TSUZUKI_RUN_ID"] == "1"


def test_a_huge_payload_comes_in_a_file_that_goes_with_the_run(run: Run) -> None:
    event, arguments = {"body": "続" * 50_000}, {"ids": list(range(30_000))}
    script = (
        "import json, os; files = [os.environ[f'TSUZUKI_{n}_FILE'] for n in ('EVENT', 'ARGUMENTS')]\n"
        "for file in files: print(file, oct(os.stat(file).st_mode), "
        "len(str(json.load(open(file, encoding='utf-8')))))"
    )
    task = a_task(
        "command", {"argv": [sys.executable, "-c", script]}, event=event, arguments=arguments
    )
    outcome, ears = run(task=task)
    assert outcome == SUCCEEDED
    for line, value in zip(ears.of("stdout"), (event, arguments), strict=True):
        path, mode, length = line.split()
        assert (mode, int(length)) == ("0o100600", len(str(value)))
        assert not Path(path).exists()


def test_the_files_of_a_command_that_cannot_start_are_removed_too(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    task = a_task("command", {"argv": ["no-such-program"]}, arguments={"x": "y" * 100_000})
    assert isinstance(run(task=task)[0], Failed)
    assert list(tmp_path.iterdir()) == []


def test_bytes_that_are_not_text_reach_the_command_as_they_are(
    run: Run, environ: dict[str, str]
) -> None:
    environ["RAW"] = os.fsdecode(b"\xff\xfe")
    outcome, ears = run("sh", "-c", 'printf %s%s "$RAW" "$0" | od -An -tx1', os.fsdecode(b"\x80"))
    assert (outcome, ears.of("stdout")) == (SUCCEEDED, [" ff fe 80"])


def test_a_command_runs_in_the_workspace_or_in_a_folder_from_there(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "inner").mkdir()
    assert run("pwd")[1].of("stdout") == [str(tmp_path)]
    assert run("pwd", cwd="inner")[1].of("stdout") == [str(tmp_path / "inner")]
    assert run("pwd", cwd="/")[1].of("stdout") == ["/"]


def test_a_command_has_no_input_no_terminal_and_no_file_of_ours(run: Run) -> None:
    script = (
        "import os, sys; print(repr(sys.stdin.read()), os.getsid(0) == os.getpid(), "
        "sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1])"
    )
    _, ears = run(sys.executable, "-c", script)
    assert ears.of("stdout") == ["'' True [0, 1, 2]"]


# --- what it says ---------------------------------------------------------------------------------


def test_output_comes_line_by_line_from_both_streams(run: Run) -> None:
    _, ears = run("sh", "-c", r"printf 'one\r\n\ntwo\n'; echo bad >&2; printf unfinished")
    assert ears.of("stdout") == ["one", "", "two", "unfinished"]
    assert ears.of("stderr") == ["bad"]


def test_a_line_is_heard_while_the_command_still_runs(executor: CommandExecutor) -> None:
    begun = Begun(executor)
    begun.begin(a_task("command", {"argv": ["sh", "-c", "echo now; sleep 300"]}))
    assert begun.ears.wait_for(1) == ["now"]
    assert begun.outcomes == []


def test_what_is_not_utf8_is_replaced(run: Run) -> None:
    _, ears = run("printf", r"caf\351 \200\n")
    assert ears.of("stdout") == ["caf� �"]


def test_a_flood_of_output_neither_fills_memory_nor_hangs(executor: CommandExecutor) -> None:
    begun = Begun(executor)
    script = "yes | head -c 200000000; echo end >&2; exit 5"
    Path("/proc/self/clear_refs").write_text("5")  # forget the highest use of memory so far
    before = _memory_high_mark_kib()
    begun.begin(a_task("command", {"argv": ["sh", "-c", script]}))
    assert begun.outcome() == failed("exit code 5: end")
    assert begun.ears.of("stdout")[-1] == "[too much output: the rest of it was dropped]"
    kept_kib = len(begun.ears.lines) * 200 / 1024
    assert _memory_high_mark_kib() - before < 32 * 1024 + kept_kib


def test_a_flood_without_a_newline_is_cut_into_pieces(run: Run) -> None:
    _, ears = run("sh", "-c", "head -c 100000 /dev/zero | tr '\\0' x")
    assert "".join(ears.of("stdout")) == "x" * 100_000
    assert max(len(line) for line in ears.of("stdout")) == 16 * 1024


# --- many -----------------------------------------------------------------------------------------


def test_fifty_commands_run_side_by_side(executor: CommandExecutor) -> None:
    begun = Begun(executor)
    tasks = [
        a_task("command", {"argv": ["sh", "-c", "echo $TSUZUKI_RUN_ID"]}, run_id=number)
        for number in range(50)
    ]
    begun.begin(*tasks)
    assert dict(begun.wait_for_all()) == dict.fromkeys(range(50), SUCCEEDED)
    assert sorted(map(int, begun.ears.of("stdout"))) == list(range(50))


def test_an_ended_command_leaves_no_descriptor_open(run: Run) -> None:
    run("true")
    before = _open_descriptors()
    for _ in range(5):
        run("sh", "-c", "echo hello; exit 1")
        run("no-such-program")
    assert _open_descriptors() == before


def test_an_argument_is_never_read_by_a_shell(run: Run, tmp_path: Path) -> None:
    _, ears = run("echo", "$(touch pwned); `touch pwned` | *")
    assert ears.of("stdout") == ["$(touch pwned); `touch pwned` | *"]
    assert list(tmp_path.iterdir()) == []


def test_the_document_handed_over_survives_any_text(run: Run) -> None:
    words = ['"', "\\", "\n", "'", "\u2028", "🎈", json.dumps({"a": "b"})]
    _, ears = run(sys.executable, "-c", "import sys, json; print(json.dumps(sys.argv[1:]))", *words)
    assert json.loads(ears.of("stdout")[0]) == words


def _open_descriptors() -> int:
    return sum(1 for _ in Path("/proc/self/fd").iterdir())


def _memory_high_mark_kib() -> int:
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
