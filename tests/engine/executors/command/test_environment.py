"""What a command gets: arguments, environment, working directory, and nothing that is not meant for it."""

import errno
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.commands import Commands
from support.executions import a_task, open_descriptors
from tsuzuki.engine.outcome import Failed, Succeeded
from tsuzuki.engine.task import Task
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


def environment_of(commands: Commands, task: Task) -> dict[str, str]:
    outcome, run_io = commands.run(task=task)
    assert outcome == SUCCEEDED
    return dict(line.split("=", 1) for line in run_io.of("stdout"))


def test_a_command_knows_which_run_it_works_for(commands: Commands) -> None:
    task = a_task(
        "command",
        {"argv": ["env"]},
        run_id=12,
        origin_id=10,
        attempt=3,
        arguments={"title": "続き"},
        event={"type": "new"},
    )
    found = environment_of(commands, task)
    assert {name: value for name, value in found.items() if name.startswith("TSUZUKI_")} == {
        "TSUZUKI_RUN_ID": "12",
        "TSUZUKI_JOB": "hello",
        "TSUZUKI_ATTEMPT": "3",
        "TSUZUKI_IDEMPOTENCY_KEY": "run-10",
        "TSUZUKI_SCHEDULED_FOR": "2026-03-01T12:00:00Z",
        "TSUZUKI_ARGUMENTS": '{"title":"続き"}',
        "TSUZUKI_EVENT": '{"type":"new"}',
    }


def test_a_command_inherits_the_environment_and_its_job_adds_to_it(commands: Commands) -> None:
    commands.environ["TOKEN"] = "s3cret"
    options = {
        "argv": ["env"],
        "environment": {"HOME": "/here", "AUTH": "Bearer ${TOKEN}", "PRICE": "$$5"},
    }
    found = environment_of(commands, a_task("command", options))
    assert found["PATH"] == commands.environ["PATH"]
    assert found["HOME"] == "/here"
    assert found["AUTH"] == "Bearer s3cret"
    assert found["PRICE"] == "$5"


def test_a_missing_variable_is_named_and_nothing_is_run(commands: Commands) -> None:
    outcome, _ = commands.run("touch", "ran", environment={"AUTH": "Bearer ${TOKEN}"})
    assert outcome == failed(
        "variable_missing: `environment`, AUTH: the environment variable TOKEN is not set "
        "(Set it, or write ${TOKEN:-…} with a default.)"
    )
    assert not (commands.folder / "ran").exists()


def test_secrets_of_tsuzuki_are_not_passed_on(commands: Commands) -> None:
    secrets = {
        "TSUZUKI_DATABASE_URL": "postgresql://u:p@h/d",
        "TSUZUKI_REDIS_URL": "redis://:p@h",
        "TSUZUKI_DATABASE_URL_FILE": "/run/secrets/url",
        "TSUZUKI_API_TOKEN": "t",
    }
    commands.environ.update(secrets, TSUZUKI_CONFIG="tsuzuki.yaml")
    found = environment_of(commands, a_task("command", {"argv": ["env"]}))
    assert not found.keys() & secrets.keys()
    assert found["TSUZUKI_CONFIG"] == "tsuzuki.yaml"


def test_a_job_that_names_such_a_secret_gets_it(commands: Commands) -> None:
    commands.environ["TSUZUKI_DATABASE_URL"] = "sqlite:///x.db"
    options = {
        "argv": ["env"],
        "environment": {"TSUZUKI_DATABASE_URL": "${TSUZUKI_DATABASE_URL}"},
    }
    found = environment_of(commands, a_task("command", options))
    assert found["TSUZUKI_DATABASE_URL"] == "sqlite:///x.db"


def test_a_worker_inside_a_run_does_not_pass_that_run_on(commands: Commands) -> None:
    commands.environ.update(TSUZUKI_EVENT='{"of":"another run"}', TSUZUKI_RUN_ID="99")
    found = environment_of(commands, a_task("command", {"argv": ["env"]}))
    assert "TSUZUKI_EVENT" not in found
    assert found["TSUZUKI_RUN_ID"] == "1"


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


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where temporary files go."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    return tmp_path


HUGE = {"x": "y" * 100_000}


def test_the_files_of_a_command_that_cannot_start_are_removed_too(
    commands: Commands, scratch: Path
) -> None:
    task = a_task("command", {"argv": ["no-such-program"]}, arguments=HUGE)
    assert isinstance(commands.run(task=task)[0], Failed)
    assert list(scratch.iterdir()) == []


def test_a_worker_without_descriptors_fails_the_run_and_keeps_nothing_of_it(
    commands: Commands, scratch: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_more(name: str) -> int:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    commands.run("true")
    before = open_descriptors()
    monkeypatch.setattr(os, "memfd_create", no_more)
    outcome, _ = commands.run(task=a_task("command", {"argv": ["true"]}, arguments=HUGE))
    assert outcome == failed("the command could not be started: Too many open files")
    assert open_descriptors() == before
    assert list(scratch.iterdir()) == []


def test_bytes_that_are_not_text_reach_the_command_as_they_are(commands: Commands) -> None:
    commands.environ["RAW"] = os.fsdecode(b"\xff\xfe")
    outcome, run_io = commands.run(
        "sh", "-c", 'printf %s%s "$RAW" "$0" | od -An -tx1', os.fsdecode(b"\x80")
    )
    assert (outcome, run_io.of("stdout")) == (SUCCEEDED, [" ff fe 80"])


def test_a_command_runs_in_the_workspace_or_in_a_folder_from_there(commands: Commands) -> None:
    (commands.folder / "inner").mkdir()
    assert commands.run("pwd")[1].of("stdout") == [str(commands.folder)]
    assert commands.run("pwd", cwd="inner")[1].of("stdout") == [str(commands.folder / "inner")]
    assert commands.run("pwd", cwd="/")[1].of("stdout") == ["/"]


def test_a_command_has_no_input_no_terminal_and_no_file_of_ours(commands: Commands) -> None:
    script = (
        "import os, sys; print(repr(sys.stdin.read()), os.getsid(0) == os.getpid(), "
        "sorted(int(n) for n in os.listdir('/proc/self/fd'))[:-1])"
    )
    _, run_io = commands.run(sys.executable, "-c", script)
    assert run_io.of("stdout") == ["'' True [0, 1, 2]"]


def test_an_argument_is_never_read_by_a_shell(commands: Commands) -> None:
    _, run_io = commands.run("echo", "$(touch pwned); `touch pwned` | *")
    assert run_io.of("stdout") == ["$(touch pwned); `touch pwned` | *"]
    assert list(commands.folder.iterdir()) == []


def test_the_document_handed_over_survives_any_text(commands: Commands) -> None:
    words = ['"', "\\", "\n", "'", "\u2028", "🎈", json.dumps({"a": "b"})]
    _, run_io = commands.run(
        sys.executable, "-c", "import sys, json; print(json.dumps(sys.argv[1:]))", *words
    )
    assert json.loads(run_io.of("stdout")[0]) == words
