"""Is the file right, and what counts in the end: without touching a database."""

import json

import pytest

from support.workspace import Workspace

MANY_FAULTS = """\
version: 1
jobs:
  one:
    comand: [x]
  two:
    command: [x]
    tmeout: 5
    schedule: {daily_at: "25:00"}
"""


def test_a_good_file_is_well_and_its_jobs_are_counted(workspace: Workspace) -> None:
    ended = workspace.ok("config", "check")
    assert ended.out == f"FILE  {workspace.file}\nJOBS  1\n"
    assert ended.err == "1 job, no problems\n"
    workspace.append("  other: {command: x}\n")
    assert workspace.ok("config", "check").err == "2 jobs, no problems\n"


def test_a_good_file_is_told_to_machines_too(workspace: Workspace) -> None:
    assert workspace.ok("config", "check", "-o", "plain").out == f"{workspace.file}\t1\n"
    for output in ("json", "jsonl"):
        out = workspace.ok("config", "check", "-o", output).out
        assert json.loads(out) == {
            "file": str(workspace.file),
            "jobs": 1,
            "unset_variables": [],
        }


def test_every_problem_is_told_once_with_its_place_and_a_hint(empty: Workspace) -> None:
    empty.file.write_text(MANY_FAULTS)
    ended = empty.run("config", "check")
    assert (ended.code, ended.out) == (3, "")
    places = [line.split()[1] for line in ended.err.splitlines() if line.startswith("  -->")]
    assert places == [f"{empty.file}:4:5", f"{empty.file}:7:5", f"{empty.file}:8:26"]
    assert ended.err.count("error[") == 3
    assert 'Did you mean "command"?' in ended.err
    assert 'Did you mean "timeout"?' in ended.err


def test_a_key_given_twice_hides_no_other_mistake(empty: Workspace) -> None:
    empty.file.write_text(MANY_FAULTS + "  two:\n    command: [y]\n")
    error = empty.run("config", "check", "-o", "json").error
    found = [(problem["line"], problem["code"]) for problem in error["problems"]]
    assert [line for line, _ in found] == [4, 7, 8, 9]
    assert found[-1] == (9, "duplicate_key")


def test_an_unset_variable_is_not_called_well(workspace: Workspace) -> None:
    workspace.append("  other: {command: x, environment: {PW: '${NOPE_VAR}'}}\n")
    ended = workspace.ok("config", "check")
    assert "NOPE_VAR" in ended.err
    assert "no problems" in workspace.ok("config", "check", NOPE_VAR="set").err
    assert "no problems" not in ended.err


@pytest.mark.parametrize(
    "mistake", ["  bad: {comand: x}\n", "  bad: [unclosed\n", "  hello: {command: x}\n"]
)
def test_a_mistake_in_the_file_keeps_no_run_from_being_read(
    workspace: Workspace, mistake: str
) -> None:
    workspace.ok("job", "run", "hello")
    workspace.ok("run-due")
    workspace.file.write_text(f"{workspace.file.read_text()}{mistake}")
    (run,) = json.loads(workspace.ok("run", "ls", "-o", "json").out)
    assert "SUCCEEDED" in workspace.ok("run", "show", str(run["id"])).out
    logs = workspace.ok("run", "logs", str(run["id"]))
    assert "hello" in logs.out
    assert str(workspace.file) in logs.err
    assert workspace.run("job", "ls").code == 3


def test_every_problem_is_in_the_json_error(empty: Workspace) -> None:
    empty.file.write_text(MANY_FAULTS)
    error = empty.run("config", "check", "-o", "json").error
    assert (error["file"], error["line"], error["column"]) == (str(empty.file), 4, 5)
    places = [(problem["line"], problem["column"]) for problem in error["problems"]]
    assert places == [(4, 5), (7, 5), (8, 26)]
    assert error["problems"][0]["hint"] == 'Did you mean "command"?'


def test_the_file_of_people_is_checked_too(empty: Workspace) -> None:
    empty.file.write_text("commits: {people: people.yaml}\n")
    missing = empty.run("config", "check", "-o", "json")
    assert (missing.code, missing.error["code"]) == (3, "people_file")
    people = empty.folder / "people.yaml"
    people.write_text("people:\n  Ann: [ann@example.org]\nteams:\n  Web: [An]\n")
    wrong = empty.run("config", "check", "-o", "json")
    assert (wrong.code, wrong.error["code"]) == (3, "person_unknown")
    assert (wrong.error["file"], wrong.error["line"]) == (str(people), 4)
    assert "Ann" in wrong.error["hint"]
    empty.ok("config", "show")
    people.write_text("people:\n  Ann: [ann@example.org]\n")
    empty.ok("config", "check")


def test_a_file_that_a_variable_names_is_checked_where_the_variable_is_set(
    empty: Workspace,
) -> None:
    empty.file.write_text("commits: {people: '${PEOPLE}'}\n")
    empty.ok("config", "check")
    assert empty.run("config", "check", PEOPLE="gone.yaml").code == 3


def test_addresses_and_numbers_may_be_variables(empty: Workspace) -> None:
    empty.file.write_text(
        "feeds:\n"
        "  accounts: {default: {type: mastodon, base_url: '${SERVER}', timeout: '${SECONDS}'}}\n"
    )
    empty.ok("config", "check")


def test_another_file_may_be_named(workspace: Workspace) -> None:
    (workspace.folder / "other.yaml").write_text("jobs: {}\n")
    assert workspace.data("config", "check", "other.yaml")["jobs"] == 0
    assert workspace.data("config", "check", "-c", "other.yaml")["jobs"] == 0
    ended = workspace.run("config", "check", "missing.yaml", "-o", "json")
    assert (ended.code, ended.error["code"]) == (3, "config_file")


def test_where_there_is_no_file_the_way_to_one_is_told(empty: Workspace) -> None:
    ended = empty.run("config", "check", "-o", "json")
    assert (ended.code, ended.error["code"]) == (3, "no_file")
    assert "tsuzuki init" in ended.error["hint"]


def test_neither_command_touches_a_database(empty: Workspace) -> None:
    empty.file.write_text("database_url: postgresql://127.0.0.1:1/nothing\njobs: {}\n")
    empty.ok("config", "check")
    empty.ok("config", "show")
    assert list(empty.content()) == ["tsuzuki.yaml"]


def test_the_configuration_in_force_is_shown_with_its_origins(empty: Workspace) -> None:
    empty.file.write_text(
        "timezone: Asia/Tokyo\nredis_url: redis://cache/0\nlog_archive: ./logs\n"
        "contact: me@example.org\njobs: {}\n"
    )
    rows = empty.data(
        *["config", "show", "--database-url", "sqlite:///flag.db"],
        TSUZUKI_DATABASE_URL="sqlite:///variable.db",
        TSUZUKI_REDIS_URL="redis://other/1",
    )
    shown = {row["key"]: (row["value"], row["origin"]) for row in rows if "." not in row["key"]}
    assert shown == {
        "file": (str(empty.file), "found automatically"),
        "database_url": (f"sqlite:///{empty.folder}/flag.db", "--database-url"),
        "database_direct_url": (None, "default"),
        "redis_url": ("redis://other/1", "TSUZUKI_REDIS_URL"),
        "timezone": ("Asia/Tokyo", f"{empty.file}:1:1"),
        "log_archive": (str(empty.folder / "logs"), f"{empty.file}:3:14"),
        "contact": ("me@example.org", f"{empty.file}:4:1"),
        "jobs": (0, f"{empty.file}:5:1"),
    }


def test_without_a_file_everything_is_default(empty: Workspace) -> None:
    rows = empty.data("config", "show")
    assert {row["origin"] for row in rows} == {"default"}
    heading, *lines = empty.ok("config", "show").out.splitlines()
    assert heading.split() == ["KEY", "VALUE", "ORIGIN"]
    assert len(lines) == len(rows)
    assert "timezone\tUTC\tdefault\n" in empty.ok("config", "show", "-o", "plain").out
    assert len(empty.ok("config", "show", "-o", "jsonl").out.splitlines()) == len(rows)


def test_the_origin_of_a_named_file_is_told(workspace: Workspace) -> None:
    (by_flag, *_) = workspace.data("config", "show", "-c", "tsuzuki.yaml")
    (by_variable, *_) = workspace.data("config", "show", TSUZUKI_CONFIG="tsuzuki.yaml")
    assert (by_flag["origin"], by_variable["origin"]) == ("--config", "TSUZUKI_CONFIG")


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "plain"])
def test_no_secret_is_shown(output: str, empty: Workspace) -> None:
    empty.file.write_text("log_archive: s3://bucket/x?secret_access_key=${ARCHIVE}\njobs: {}\n")
    secret = empty.folder / "secret"
    secret.write_text("redis://:hunter2@cache/0\n")
    ended = empty.ok(
        *["config", "show", "-o", output],
        TSUZUKI_DATABASE_URL="postgresql://tsuzuki:hunter2@db/jobs?sslpassword=hunter2",
        TSUZUKI_REDIS_URL_FILE=str(secret),
        ARCHIVE="hunter2",
    )
    assert "hunter2" not in ended.out + ended.err
    assert "tsuzuki:***@db/jobs" in ended.out
    assert "TSUZUKI_REDIS_URL_FILE" in ended.out


def test_sections_are_shown_with_their_defaults_and_without_secrets(empty: Workspace) -> None:
    empty.file.write_text("books: {daily_limit: 7, api_key: '${KEY}'}\njobs: {}\n")
    rows = empty.data("config", "show", KEY="hunter2", TSUZUKI_COMMITS_GITLAB_TOKEN="hunter2")
    shown = {row["key"]: (row["value"], row["origin"]) for row in rows}
    assert shown["books.daily_limit"] == (7, f"{empty.file}:1:22")
    assert shown["books.api_key"][0] == "${KEY}"
    assert shown["books.mail.port"] == (587, "default")
    assert shown["commits.gitlab.token"] == ("***", "TSUZUKI_COMMITS_GITLAB_TOKEN")


def test_the_credentials_in_an_address_of_a_section_are_not_shown(empty: Workspace) -> None:
    empty.file.write_text("jobs: {}\n")
    rows = empty.data(
        "config", "show", TSUZUKI_COMMITS_GITLAB_URL="https://oauth2:hunter2@git.example.org"
    )
    shown = {row["key"]: row["value"] for row in rows}
    assert shown["commits.gitlab.url"] == "https://oauth2:***@git.example.org"


def test_variables_that_are_not_set_are_named(empty: Workspace) -> None:
    empty.file.write_text("books: {api_key: '${KEY}', base_url: '${URL:-https://h/}'}\njobs: {}\n")
    told = empty.ok("config", "check")
    assert "1:18: environment variable KEY is not set" in told.err
    assert "URL" not in told.err
    assert empty.ok("config", "check", "-o", "json").data["unset_variables"] == ["KEY"]
    assert empty.data("config", "check", KEY="k")["unset_variables"] == []


def test_variables_that_commands_need_are_named_too(empty: Workspace) -> None:
    empty.file.write_text(
        "jobs:\n  dump:\n    command: pg_dump\n"
        "    environment:\n      PGPASSWORD: ${DUMP_KEY}\n      PGUSER: ${DUMP_USER:-me}\n"
    )
    assert "5:19: environment variable DUMP_KEY is not set" in empty.ok("config", "check").err
    assert empty.data("config", "check", DUMP_KEY="k")["unset_variables"] == []
    assert empty.data("config", "check", DUMP_KEY_FILE="k")["unset_variables"] == []


@pytest.mark.parametrize(
    "section",
    [
        "books: {api_key: hunter2}",
        "books: {mail: {password: hunter2}}",
        "commits: {gitlab: {token: hunter2}}",
        "feeds: {models: {default: {provider: gemini, api_key: hunter2}}}",
        "feeds: {accounts: {main: {type: webhook, url: 'https://h/', secret: hunter2}}}",
        "feeds: {requests: {a: {headers: {Authorization: hunter2}}}}",
    ],
)
def test_a_secret_that_is_written_out_is_refused_and_not_repeated(
    section: str, empty: Workspace
) -> None:
    empty.file.write_text(f"{section}\njobs: {{}}\n")
    ended = empty.run("config", "check")
    assert ended.code == 3
    assert "error[secret_in_file]" in ended.err
    assert "hunter2" not in ended.err
    empty.file.write_text(f"{section.replace('hunter2', '${SECRET}')}\njobs: {{}}\n")
    assert "secret_in_file" not in empty.run("config", "check").err
