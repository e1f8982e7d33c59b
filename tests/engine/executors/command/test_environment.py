"""What a command gets: arguments, environment, working directory, and nothing that is not meant for it."""

from functools import partial

from support.commands import Commands
from support.executions import a_task
from tsuzuki.config import expand
from tsuzuki.engine.executors.command.environment import WorkerEnvironment
from tsuzuki.engine.executors.command.spec import command_spec_for
from tsuzuki.engine.outcome import Failed, Succeeded
from tsuzuki.engine.task import Task
from tsuzuki.model.states import Reason

SUCCEEDED = Succeeded(result={"exit_code": 0})


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
        "variable_missing: `environment`, AUTH: environment variable TOKEN is not set "
        "(Set it, or give a default: ${TOKEN:-…})"
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


def test_a_secret_of_the_configuration_is_passed_on_only_to_a_job_that_names_it(
    commands: Commands,
) -> None:
    commands.environ.update(BOOKS_KEY="hunter2", OTHER="x")
    spec = partial(
        command_spec_for,
        expand=expand,
        worker=WorkerEnvironment(commands.environ, secret_names={"BOOKS_KEY"}),
        base_folder=commands.folder,
    )
    plain = spec(a_task("command", {"argv": ["env"]}))
    assert "BOOKS_KEY" not in plain.environment
    assert plain.environment["OTHER"] == "x"
    named = {"argv": ["env"], "environment": {"BOOKS_KEY": "${BOOKS_KEY}"}}
    assert spec(a_task("command", named)).environment["BOOKS_KEY"] == "hunter2"


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


def test_a_command_runs_in_the_workspace_or_in_a_folder_from_there(commands: Commands) -> None:
    (commands.folder / "inner").mkdir()
    assert commands.run("pwd")[1].of("stdout") == [str(commands.folder)]
    assert commands.run("pwd", cwd="inner")[1].of("stdout") == [str(commands.folder / "inner")]
    assert commands.run("pwd", cwd="/")[1].of("stdout") == ["/"]


def test_an_argument_is_never_read_by_a_shell(commands: Commands) -> None:
    _, run_io = commands.run("echo", "$(touch pwned); `touch pwned` | *")
    assert run_io.of("stdout") == ["$(touch pwned); `touch pwned` | *"]
    assert list(commands.folder.iterdir()) == []


def test_what_a_service_manager_tells_the_worker_is_not_told_to_its_commands() -> None:
    told = {"NOTIFY_SOCKET": "/run/systemd/notify", "WATCHDOG_USEC": "1", "WATCHDOG_PID": "2"}
    assert WorkerEnvironment({**told, "LANG": "C"}).inherited == {"LANG": "C"}
