"""Whatever a person gets wrong: a clear answer, an exit code, and not a byte changed."""

import sqlite3
from contextlib import closing

import pytest

from support.workspace import Workspace

BAD_FILES = {
    "an unknown key": ("  a:\n    command: x\n    tmeout: 5m\n", "unknown_key", (4, 5)),
    "a misspelt command": ("  a:\n    comand: x\n", "unknown_key", (3, 5)),
    "a number for text": ("  a:\n    command: 5\n", "configuration", (3, 14)),
    "text for a number": ("  a:\n    command: x\n    priority: high\n", "configuration", (4, 15)),
    "a list for a job": ("  a: [x]\n", "missing_key", (2, 3)),
    "a job named twice": ("  a: {command: x}\n  a: {command: y}\n", "duplicate_key", (3, 3)),
    "a time that is none": (
        '  a:\n    command: x\n    schedule: {daily_at: "25:00"}\n',
        "schedule",
        (4, 26),
    ),
    "a day that never comes": (
        '  a:\n    command: x\n    schedule: {cron: "0 0 30 2 *"}\n',
        "schedule",
        (4, 22),
    ),
    "an unknown zone": (
        '  a:\n    command: x\n    schedule: {daily_at: "07:00", timezone: Europ/Berlin}\n',
        "timezone",
        (4, 45),
    ),
    "broken YAML": ("  a: {command: [x}\n", "yaml", None),
    "a bad name": ("  a b: {command: x}\n", "job_name", (2, 3)),
    "a tab": ("\ta: {command: x}\n", "yaml", None),
}
COMMANDS = [
    "job ls",
    "job show hello",
    "job add other -- x",
    "job update hello --every 1h",
    "job disable hello",
    "job rm hello --yes",
    "job next hello",
    "job apply",
    "job apply --dry-run",
    "settings ls",
    "settings set lease_seconds 20",
    "audit ls",
    "db upgrade",
    "db check",
    "db backup copy.db",
    "config check",
    "config show",
    "init --if-missing",
]


@pytest.mark.parametrize("fault", BAD_FILES)
def test_a_fault_in_the_file_is_told_with_its_place_in_text_and_json(
    fault: str, workspace: Workspace
) -> None:
    jobs, code, place = BAD_FILES[fault]
    workspace.file.write_text(f"jobs:\n{jobs}")
    before = workspace.content()
    told, read = workspace.run("job", "ls"), workspace.run("job", "ls", "-o", "json")
    assert (told.code, read.code, told.out) == (3, 3, "")
    error = read.error
    assert error["code"] == code
    assert told.err.startswith(f"error[{code}]: {error['message']}\n")
    assert f"  --> {workspace.file}:{error['line']}:{error['column']}\n" in told.err
    assert place in (None, (error["line"], error["column"]))
    assert "Traceback" not in told.err
    assert workspace.content() == before


def test_a_key_that_is_nearly_right_is_guessed(workspace: Workspace) -> None:
    workspace.file.write_text("jobs:\n  a:\n    command: x\n    tmeout: 5m\n")
    assert workspace.run("job", "ls", "-o", "json").error["hint"] == 'Did you mean "timeout"?'


@pytest.mark.parametrize("words", COMMANDS)
def test_no_command_goes_on_with_a_faulty_file(words: str, workspace: Workspace) -> None:
    workspace.file.write_text("jobs:\n  a:\n    comand: x\n")
    before = workspace.content()
    ended = workspace.run("-o", "json", *words.split())
    assert (ended.code, ended.error["line"], ended.error["column"]) == (3, 3, 5)
    assert workspace.content() == before


@pytest.mark.parametrize("words", COMMANDS)
def test_a_database_that_does_not_answer_is_told_and_nothing_is_written(
    words: str, workspace: Workspace
) -> None:
    before = workspace.content()
    ended = workspace.run(
        "-o", "json", *words.split(), TSUZUKI_DATABASE_URL="postgresql://u:hunter2@127.0.0.1:1/x"
    )
    assert "hunter2" not in ended.out + ended.err
    assert workspace.content() == before
    if words.startswith("config"):
        assert ended.code == 0
    else:
        assert (ended.code, ended.error["code"]) == (5, "database")
        assert "Check that the server is running" in ended.error["hint"]


@pytest.mark.parametrize("words", COMMANDS)
def test_a_file_that_is_no_database_is_told_and_left_alone(
    words: str, workspace: Workspace
) -> None:
    workspace.database.write_bytes(b"Dear diary, this is no database. " * 100)
    before = workspace.content()
    ended = workspace.run("-o", "json", *words.split())
    assert workspace.content() == before
    if words.startswith("config"):
        assert ended.code == 0
    else:
        assert (ended.code, ended.error["code"]) == (5, "database")
        assert "is not an SQLite database" in ended.error["message"]


@pytest.mark.parametrize("words", COMMANDS)
def test_a_database_of_a_newer_version_is_told_and_left_alone(
    words: str, workspace: Workspace
) -> None:
    with closing(sqlite3.connect(workspace.database)) as connection, connection:
        connection.execute("UPDATE tsuzuki_schema_version_engine SET version_num = 'ffff'")
    before = workspace.content()
    ended = workspace.run("-o", "json", *words.split())
    made = {name for name in workspace.content() if name not in before}
    assert {**workspace.content(), **before} == workspace.content()
    match words.split():
        case ["config", *_]:
            assert (ended.code, made) == (0, set())
        case ["db", "backup", copy]:
            assert (ended.code, made) == (0, {copy})
        case ["db", "check"]:
            assert ended.code == 1
            assert "newer version" in ended.data[0]["hint"]
        case _:
            assert (ended.code, ended.error["code"]) == (5, "schema_mismatch")
            assert "newer version" in ended.error["hint"]


@pytest.mark.parametrize(
    "words", [words for words in COMMANDS if words not in ("init --if-missing", "db upgrade")]
)
def test_where_there_is_no_workspace_nothing_is_made(words: str, empty: Workspace) -> None:
    ended = empty.run("-o", "json", *words.split())
    assert empty.content() == {}
    match words.split():
        case ["config", "show"]:
            assert ended.code == 0
        case ["db", *_]:
            assert (ended.code, ended.error["code"]) == (5, "database_missing")
        case _:
            assert ended.code == 3
            assert "tsuzuki init" in ended.error["hint"]


def test_a_database_that_is_named_and_not_there_is_told_by_its_path(empty: Workspace) -> None:
    ended = empty.run("--database-url", "sqlite:////nonexistent/x.db", "run", "ls", "-o", "json")
    assert (ended.code, ended.error["code"]) == (5, "database_missing")
    assert "/nonexistent/x.db" in ended.error["message"]


IMPOSSIBLE_VALUES = [
    ["--set", "tmeout=5m"],
    ["--set", "priority=high"],
    ["--set", "backoff.initial=soon"],
    ["--set", "schedule.daily_at=25:00"],
    ["--set", "enabled=maybe"],
    ["--set", "arguments.x=1", "--set", "arguments=none"],
    ["--every", "often"],
    ["--every", "0s"],
    ["--every", "999999999d999999999d"],
    ["--daily-at", "7 o'clock"],
    ["--cron", "0 0 30 2 *"],
    ["--schedule", "whenever"],
    ["--daily-at", "07:00", "--timezone", "Europ/Berlin"],
    ["--timeout", "long"],
    ["--max-retries", "-1"],
    ["--priority", "1001"],
    ["--env", "A=${unclosed"],
]
IMPOSSIBLE_THINGS_TO_RUN = [
    ["--type", "magic"],
    ["--python", "no function"],
    ["--command", "a | b"],
    ["--command", "unclosed 'quote"],
    ["--set", "command=[]"],
]


@pytest.mark.parametrize("words", IMPOSSIBLE_VALUES + IMPOSSIBLE_THINGS_TO_RUN, ids=" ".join)
@pytest.mark.parametrize("verb", ["add other", "update hello"])
def test_what_cannot_be_is_refused_before_anything_is_written(
    verb: str, words: list[str], workspace: Workspace
) -> None:
    before = workspace.content()
    command = ["--", "x"] if words in IMPOSSIBLE_VALUES else []
    ended = workspace.run("-o", "json", "job", *verb.split(), *words, *command)
    assert (ended.code, ended.out) == (3, "")
    assert ended.error["message"]
    assert workspace.content() == before


def test_a_zone_alone_is_no_schedule(workspace: Workspace) -> None:
    before = workspace.content()
    assert workspace.run(*"job add other --timezone UTC -- x".split()).code == 3
    assert workspace.content() == before


def test_a_name_that_cannot_be_is_refused(workspace: Workspace) -> None:
    before = workspace.content()
    ended = workspace.run(*["-o", "json", "job", "add", "no name", "--", "x"])
    assert (ended.code, ended.error["code"]) == (3, "job_name")
    assert workspace.content() == before


def test_a_missing_variable_is_told_where_it_is_used(workspace: Workspace) -> None:
    workspace.file.write_text("database_url: postgresql://u:${PASSWORD}@db/x\njobs: {}\n")
    error = workspace.run("job", "ls", "-o", "json").error
    assert (error["code"], error["line"]) == ("variable_missing", 1)
    assert "PASSWORD" in error["message"]


@pytest.mark.parametrize("url", ["mysql://db/x", "sqlite://", "nonsense", "sqlite:///:memory:"])
def test_a_database_url_of_another_kind_is_a_configuration_error(
    url: str, workspace: Workspace
) -> None:
    before = workspace.content()
    ended = workspace.run("job", "ls", "-o", "json", "--database-url", url)
    assert (ended.code, ended.error["code"]) == (3, "database_url")
    assert workspace.content() == before


def test_a_folder_of_the_database_that_does_not_exist_is_told(workspace: Workspace) -> None:
    ended = workspace.run("job", "ls", "-o", "json", "--database-url", "sqlite:///no/such/x.db")
    assert (ended.code, ended.error["code"]) == (5, "database")


def test_the_program_ends_with_the_same_codes_and_without_a_traceback(
    workspace: Workspace,
) -> None:
    workspace.file.write_text("jobs:\n  a:\n    comand: x\n")
    before = workspace.content()
    ended = workspace.process("job", "ls")
    assert (ended.code, ended.out) == (3, "")
    assert ended.err.splitlines() == [
        "error[unknown_key]: unknown key `comand`",
        f"  --> {workspace.file}:3:5",
        "     3 |     comand: x",
        "       |     ^",
        '  hint: Did you mean "command"?',
    ]
    unreachable = workspace.process(
        "job", "ls", "-c", "/dev/null", "--database-url", "postgresql://127.0.0.1:1/x"
    )
    assert "Traceback" not in unreachable.err
    assert workspace.content() == before


@pytest.mark.parametrize("form", ["table", "json"])
def test_what_the_configuration_names_as_secret_is_in_no_error(empty: Workspace, form: str) -> None:
    """A service may send the key back in its error, and an error may quote what was typed."""
    empty.file.write_text("books: {api_key: '${SHELF}'}\njobs: {}\n")
    ended = empty.run("job", "show", "a-hunter2-b", "--output", form, SHELF="hunter2")
    assert ended.code == 4
    assert "a-***-b" in ended.err
    assert "hunter2" not in ended.err


@pytest.mark.parametrize(
    "words",
    [
        "run show {}",
        "run ls --before-id {}",
        "run bulk show {}",
        "run bulk ls --before-id {}",
        "run bulk show 1 --after-run {}",
        "run failures ack group --through {}",
        "event ls --before-id {}",
        "audit ls --before-id {}",
        "books mail --resend {} --yes",
        "books mail --mark-sent {} --yes",
    ],
)
def test_an_id_that_no_database_can_hold_is_a_usage_error(words: str, workspace: Workspace) -> None:
    assert workspace.run(*words.format(2**63).split()).code == 2
    assert workspace.run(*words.format(2**63 - 1).split()).code in (0, 4)


def test_a_command_in_quotes_is_refused_whatever_its_length(workspace: Workspace) -> None:
    ended = workspace.run("job", "add", "other", "--", f"echo {'x' * 300}")
    assert ended.code == 2
    assert "Remove the quotes" in ended.err


def test_a_secret_from_a_file_is_in_no_error_and_no_log_and_not_inherited(
    workspace: Workspace,
) -> None:
    (workspace.folder / "key").write_text("hunter2\n")
    workspace.file.write_text(
        "books: {api_key: '${SHELF}'}\njobs:\n"
        "  leak: {command: [sh, -c, 'cat key; echo file=$SHELF_FILE'], on_event: look}\n"
        "  given: {command: [sh, -c, 'echo ${#KEY}'], environment: {KEY: '${SHELF}'}, on_event: look}\n"
    )
    ended = workspace.run("job", "show", "a-hunter2-b", SHELF_FILE="key")
    assert "a-***-b" in ended.err
    leak = workspace.data("job", "run", "leak", SHELF_FILE="key")["run_id"]
    given = workspace.data("job", "run", "given", SHELF_FILE="key")["run_id"]
    workspace.ok("run-due", SHELF_FILE="key")
    assert workspace.ok("run", "logs", str(leak)).out == "***\nfile=\n"
    assert workspace.ok("run", "logs", str(given)).out == "7\n"


@pytest.mark.parametrize(
    "words",
    [
        ("event", "emit", "deep", "--payload", "[" * 65 + "]" * 65),
        ("job", "run", "hello", "--args", '{"a": ' + "[" * 65 + "]" * 65 + "}"),
    ],
    ids=["event", "run"],
)
def test_a_value_that_is_nested_too_deep_is_not_stored(
    workspace: Workspace, words: tuple[str, ...]
) -> None:
    refused = workspace.run(*words, "-o", "json")
    assert (refused.code, refused.error["code"]) == (2, "too_deep")
