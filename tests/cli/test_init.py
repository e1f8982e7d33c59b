"""From an empty folder to a workspace in one command."""

import json
from pathlib import Path

import pytest

from support.workspace import Workspace
from tsuzuki.config.starter_file import starter_text
from tsuzuki.wiring.collectors import installed_collectors

STARTER = starter_text(installed_collectors().kinds)

UNREACHABLE = "postgresql://127.0.0.1:1/nothing"


def test_a_new_workspace_has_a_commented_file_a_database_and_its_job_applied(
    empty: Workspace,
) -> None:
    ended = empty.ok("init")
    assert empty.file.read_text() == STARTER
    assert ended.out.splitlines() == [
        f"FILE      {empty.file}",
        f"DATABASE  sqlite:///{empty.database}",
        "JOBS      hello",
    ]
    (hello,) = empty.data("job", "ls")
    assert (hello["name"], hello["sync_state"]) == ("hello", "applied")


def test_the_next_three_commands_are_told_on_stderr(empty: Workspace) -> None:
    told = empty.ok("init").err.splitlines()
    assert told[:2] == ["", "Next:"]
    assert [line.split("  ")[1].strip() for line in told[2:]] == [
        "tsuzuki job ls",
        "tsuzuki up",
        "tsuzuki job run hello",
    ]


def test_another_folder_is_made_and_the_way_there_is_told_first(empty: Workspace) -> None:
    ended = empty.ok("init", "some where/deep")
    assert (empty.folder / "some where/deep/tsuzuki.yaml").is_file()
    assert (empty.folder / "some where/deep/tsuzuki.db").is_file()
    assert ended.err.splitlines()[2].startswith("  cd 'some where/deep' ")


@pytest.mark.parametrize("output", ["json", "jsonl"])
def test_a_machine_reads_what_was_made_and_is_not_talked_to(output: str, empty: Workspace) -> None:
    ended = empty.ok("init", "-o", output)
    assert ended.err == ""
    assert json.loads(ended.out) == {
        "file": str(empty.file),
        "database_url": f"sqlite:///{empty.database}",
        "jobs": ["hello"],
    }


def test_plain_output_is_one_line_of_fields(empty: Workspace) -> None:
    fields = empty.ok("init", "-o", "plain").out.rstrip("\n").split("\t")
    assert fields == [str(empty.file), f"sqlite:///{empty.database}", '["hello"]']


def test_quiet_says_nothing_beside_the_data(empty: Workspace) -> None:
    assert empty.ok("init", "-q").err == ""


def test_a_file_that_exists_is_a_conflict_and_nothing_is_touched(empty: Workspace) -> None:
    empty.file.write_text("# mine\n")
    ended = empty.run("init", "-o", "json")
    assert ended.code == 6
    assert ended.error["file"] == str(empty.file)
    assert "tsuzuki init FOLDER" in ended.error["hint"]
    assert empty.content() == {"tsuzuki.yaml": b"# mine\n"}


def test_if_missing_leaves_a_file_alone_and_brings_the_database_in_step(empty: Workspace) -> None:
    written = "jobs: {mine: {command: 'true'}}  # mine\n"
    empty.file.write_text(written)
    ended = empty.ok("init", "--if-missing")
    assert "nothing was changed" in ended.err
    assert "Next:" not in ended.err
    assert empty.file.read_text() == written
    assert [job["sync_state"] for job in empty.data("job", "ls")] == ["applied"]


def test_if_missing_writes_a_file_that_is_missing_and_may_be_run_again(empty: Workspace) -> None:
    assert "Next:" in empty.ok("init", "--if-missing").err
    before = empty.content()
    empty.ok("init", "--if-missing")
    assert empty.content() == before


def test_a_database_that_does_not_answer_leaves_no_file_so_that_one_can_try_again(
    empty: Workspace,
) -> None:
    ended = empty.run("init", "-o", "json", TSUZUKI_DATABASE_URL=UNREACHABLE)
    assert ended.code == 5
    assert empty.content() == {}
    empty.ok("init")


def test_a_database_with_the_jobs_of_another_workspace_is_refused_and_keeps_them(
    empty: Workspace, empty_database_url: str
) -> None:
    here = {"TSUZUKI_DATABASE_URL": empty_database_url}
    theirs = Path("theirs/tsuzuki.yaml")
    (empty.folder / "theirs").mkdir()
    (empty.folder / theirs).write_text("jobs: {a: {command: x}}\n")
    empty.ok("--config", str(theirs), "job", "apply", **here)
    before = {*empty.content()}
    ended = empty.run("init", "-o", "json", **here)
    assert (ended.code, ended.error["code"]) == (6, "other_workspace")
    assert "another workspace: a" in ended.error["message"]
    assert "TSUZUKI_DATABASE_URL" in ended.error["hint"]
    assert {*empty.content()} == before
    (job,) = empty.data("--config", str(theirs), "job", "ls", **here)
    assert (job["name"], job["sync_state"]) == ("a", "applied")


def test_a_job_of_another_workspace_with_the_name_of_the_first_one_is_not_changed(
    empty: Workspace,
) -> None:
    empty.file.write_text("jobs: {hello: {command: mine}}\n")
    empty.ok("job", "apply")
    empty.file.unlink()
    assert empty.run("init").code == 6
    assert not empty.file.exists()


def test_a_database_that_has_just_the_first_job_may_have_its_file_written_again(
    empty: Workspace,
) -> None:
    empty.ok("init")
    empty.file.unlink()
    (empty.folder / ".env.example").unlink()
    (empty.folder / "tsuzuki.schema.json").unlink()
    empty.ok("init")


def test_a_file_of_the_person_survives_a_database_that_does_not_answer(empty: Workspace) -> None:
    empty.file.write_text("jobs: {}\n")
    ended = empty.run("init", "--if-missing", TSUZUKI_DATABASE_URL=UNREACHABLE)
    assert ended.code == 5
    assert empty.content() == {"tsuzuki.yaml": b"jobs: {}\n"}


def test_the_file_may_be_named_by_option_or_variable(empty: Workspace) -> None:
    empty.ok("init", "--config", "a/one.yaml")
    empty.ok("init", TSUZUKI_CONFIG="b/two.yaml")
    made = {name for name in empty.content() if not name.endswith((".json", ".example"))}
    assert made == {"a/one.yaml", "a/tsuzuki.db", "b/two.yaml", "b/tsuzuki.db"}


def test_a_folder_and_a_file_together_are_too_much(empty: Workspace) -> None:
    assert empty.run("init", "here", "--config", "there.yaml").code == 2
    assert empty.content() == {}


def test_a_folder_that_cannot_be_made_is_told(empty: Workspace) -> None:
    (empty.folder / "taken").write_text("a file")
    ended = empty.run("init", "taken/inside", "-o", "json")
    assert (ended.code, ended.error["code"]) == (74, "folder_unwritable")


def test_a_workspace_can_start_on_either_database(
    empty: Workspace, empty_database_url: str
) -> None:
    empty.ok("init", TSUZUKI_DATABASE_URL=empty_database_url)
    assert not empty.database.exists()
    (hello,) = empty.data("job", "ls", TSUZUKI_DATABASE_URL=empty_database_url)
    assert hello["sync_state"] == "applied"


def test_the_program_makes_a_workspace_where_it_stands(empty: Workspace) -> None:
    ended = empty.process("init")
    assert ended.code == 0, ended.err
    assert sorted(empty.content()) == [
        ".env.example",
        "tsuzuki.db",
        "tsuzuki.schema.json",
        "tsuzuki.yaml",
    ]
    assert "tsuzuki job run hello" in ended.err


def test_an_editor_finds_the_schema_by_the_first_line_and_it_is_that_of_the_command(
    empty: Workspace,
) -> None:
    empty.ok("init")
    first = empty.file.read_text().splitlines()[0]
    named = empty.folder / first.removeprefix("# yaml-language-server: $schema=")
    assert named.read_text() == empty.ok("config", "schema").out
    assert json.loads(named.read_text())["title"] == "tsuzuki.yaml"


def test_files_beside_the_new_one_are_not_replaced(empty: Workspace) -> None:
    (empty.folder / ".env.example").write_text("MINE=1\n")
    empty.ok("init")
    assert (empty.folder / ".env.example").read_text() == "MINE=1\n"
    assert (empty.folder / "tsuzuki.schema.json").is_file()


def test_every_variable_of_the_example_is_one_that_counts(empty: Workspace) -> None:
    empty.ok("init")
    lines = (empty.folder / ".env.example").read_text().splitlines()
    pairs = [line.removeprefix("#").split("=", 1) for line in lines if line.startswith("#TSUZUKI_")]
    variables = {name: value or "secret-word" for name, value in pairs}
    shown = empty.data("config", "show", **variables)
    origins = {row["origin"] for row in shown}
    assert {name for name in variables if name not in origins} == set()
    assert "secret-word" not in json.dumps(shown)
