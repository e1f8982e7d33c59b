"""Looking at jobs, and making the database follow the file."""

import json
from datetime import datetime, timedelta

import pytest

from support.workspace import Workspace

NIGHTLY = """
  nightly:
    command: [backup]
    schedule: {daily_at: "02:30", timezone: Europe/Berlin}
"""
BY_HAND = """
  by-hand:
    command: [tidy]
"""


def test_the_list_has_a_line_for_each_job_with_its_schedule_in_words(workspace: Workspace) -> None:
    workspace.append(NIGHTLY)
    workspace.define("made", {"command": ["true"], "on_event": "order.created"})
    ended = workspace.ok("job", "ls")
    heading, hello, made, nightly = ended.out.splitlines()
    assert heading.split() == "NAME ENABLED SCHEDULE NEXT LAST ENDED KIND SOURCE SYNC".split()
    assert hello.startswith("hello    on       every 10 minutes ")
    assert hello.endswith("Z  -     -      command  file      applied")
    assert "on event order.created" in made
    assert made.endswith("  -                     -     -      command  database  applied")
    assert "at 02:30 every day, Europe/Berlin" in nightly
    assert nightly.endswith("not applied")
    assert (
        ended.err
        == "The file and the database differ. Update the database with: tsuzuki job apply\n"
    )


def test_plain_lines_hold_the_same_columns_as_values(workspace: Workspace) -> None:
    ended = workspace.ok("job", "ls", "-o", "plain")
    name, enabled, schedule, next_at, *rest = ended.out.rstrip("\n").split("\t")
    assert (name, enabled, schedule) == ("hello", "true", "every 10 minutes")
    assert datetime.fromisoformat(next_at).minute % 10 == 0
    assert rest == ["", "", "command", "file", "applied"]
    assert ended.err == ""


def test_the_list_has_the_last_result_of_each_job(workspace: Workspace) -> None:
    workspace.ok("job", "add", "bad", "--", "false")
    for name in ("hello", "bad"):
        workspace.ok("job", "run", name)
    workspace.run("run-due", "--quiet")
    ended = {job["name"]: job for job in workspace.data("job", "ls")}
    assert (ended["hello"]["last_outcome"], ended["hello"]["last_run_id"]) == ("succeeded", 1)
    assert (ended["bad"]["last_outcome"], ended["bad"]["last_run_id"]) == ("failed", 2)
    assert workspace.data("job", "ls") == list(ended.values())  # by the fast reader


def test_built_in_jobs_are_listed_only_when_asked_for(workspace: Workspace) -> None:
    workspace.ok("job", "add", "bad", "--", "false")
    workspace.ok("job", "run", "bad")
    workspace.run("run-due", "--quiet")
    workspace.ok("run", "bulk", "retry", "--job", "bad", "--yes", "--background")
    names = {job["name"] for job in workspace.data("job", "ls")}
    assert names == {"hello", "bad"}
    assert {job["name"] for job in workspace.data("job", "ls", "--built-in")} > names


def test_json_holds_every_field(workspace: Workspace) -> None:
    (job,) = workspace.data("job", "ls")
    assert job["options"]["argv"] == ["echo", "hello from Tsuzuki"]
    assert job["schedule"] == {"every": "10m"}
    assert job["enabled"] is True
    (line,) = workspace.ok("job", "ls", "-o", "jsonl").out.splitlines()
    assert json.loads(line)["name"] == "hello"


def test_no_jobs_are_answered_with_the_way_to_the_first_one(workspace: Workspace) -> None:
    workspace.ok("job", "rm", "hello", "--yes")
    ended = workspace.ok("job", "ls")
    assert ended.out == ""
    assert "tsuzuki job add hello" in ended.err
    assert workspace.data("job", "ls") == []


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "plain"])
def test_one_job_is_shown_whole_in_every_format(output: str, workspace: Workspace) -> None:
    out = workspace.ok("job", "show", "hello", "-o", output).out
    assert "hello from Tsuzuki" in out
    assert "every 10 minutes" in out
    assert (len(out.splitlines()) == 1) == (output in ("jsonl", "plain"))


def test_a_job_is_shown_with_its_next_five_times_and_its_rules_in_words(
    workspace: Workspace,
) -> None:
    workspace.ok(
        *"job update hello --timeout 90 --max-retries 3 --env A=1 --tag gpu".split(),
        "--set=cwd=/srv",
    )
    shown = dict(
        line.split("  ", 1) for line in workspace.ok("job", "show", "hello").out.splitlines()
    )
    words = {key: value.strip() for key, value in shown.items()}
    assert words["RUNS"] == "echo 'hello from Tsuzuki', in /srv, with A=1"
    assert words["NEXT"].count("Z, 20") == 4
    assert words["TIMEOUT"] == "1m30s"
    assert words["RETRIES"] == "3, after 10s, then 2 times longer up to 1h"
    assert words["TAGS"] == "gpu"
    first, *_, last = map(datetime.fromisoformat, workspace.job("hello")["next_times"])
    assert last - first == timedelta(minutes=40)


def test_a_job_that_is_not_due_by_itself_has_no_next_times(workspace: Workspace) -> None:
    workspace.append(BY_HAND)
    assert workspace.job("by-hand")["next_times"] == []
    assert workspace.job("by-hand")["schedule_words"] == "manual"
    workspace.ok("job", "disable", "hello")
    assert workspace.job("hello")["next_times"] == []


@pytest.mark.parametrize("verb", [["show"], ["next"], ["enable"], ["disable"], ["rm", "--yes"]])
def test_an_unknown_job_is_not_found_and_the_nearest_name_suggested(
    verb: list[str], workspace: Workspace
) -> None:
    before = workspace.content()
    ended = workspace.run("job", *verb, "helo", "-o", "json")
    assert ended.code == 4
    assert 'Did you mean "hello"?' in ended.error["hint"]
    assert workspace.content() == before


def test_next_times_are_in_utc_and_on_the_clock_of_the_zone(workspace: Workspace) -> None:
    workspace.append(NIGHTLY)
    ended = workspace.ok("job", "next", "nightly", "--count", "400")
    heading, *lines = ended.out.splitlines()
    assert heading.split() == ["UTC", "Europe/Berlin"]
    assert len(lines) == 400
    assert all(" 02:30:00 " in line or " 03:00:00 " in line for line in lines)
    summer, winter = {line.split()[1] for line in lines} - {"01:00:00Z"}
    assert {summer, winter} == {"00:30:00Z", "01:30:00Z"}


def test_next_times_count_five_unless_said(workspace: Workspace) -> None:
    times = workspace.data("job", "next", "hello")
    assert len(times) == 5
    assert set(times[0]) == {"at", "local", "timezone"}
    assert workspace.ok("job", "next", "hello").out.splitlines()[0] == "UTC"
    assert len(workspace.ok("job", "next", "hello", "-o", "plain").out.splitlines()) == 5
    assert workspace.run("job", "next", "hello", "--count", "0").code == 2


def test_next_times_of_a_job_that_is_off_come_with_a_warning(workspace: Workspace) -> None:
    workspace.ok("job", "disable", "hello")
    ended = workspace.ok("job", "next", "hello", "--count", "1")
    assert len(ended.out.splitlines()) == 2
    assert ended.err.startswith("warning: 'hello' is disabled")


def test_a_job_without_a_schedule_has_no_next_times_to_tell(workspace: Workspace) -> None:
    workspace.append(BY_HAND)
    ended = workspace.run("job", "next", "by-hand", "-o", "json")
    assert (ended.code, ended.error["code"]) == (6, "no_schedule")


def test_apply_tells_what_it_added_changed_and_removed(workspace: Workspace) -> None:
    workspace.append(NIGHTLY + BY_HAND)
    assert workspace.data("job", "apply") == [
        {"name": "nightly", "change": "add", "keys": []},
        {"name": "by-hand", "change": "add", "keys": []},
    ]
    text = workspace.file.read_text()
    text = text.replace("{every: 10m}", "{every: 20m}\n    timeout: 5m").replace(NIGHTLY, "\n")
    workspace.file.write_text(text)
    ended = workspace.ok("job", "apply")
    assert [line.split() for line in ended.out.splitlines()] == [
        ["NAME", "CHANGE", "KEYS"],
        ["hello", "change", "schedule,", "timeout_seconds"],
        ["nightly", "remove", "-"],
    ]
    again = workspace.ok("job", "apply")
    assert (again.out, again.err) == ("", "Database and file already agree.\n")


def test_a_dry_run_of_apply_tells_the_same_and_does_nothing(workspace: Workspace) -> None:
    workspace.append(NIGHTLY)
    before = workspace.content()
    planned = workspace.data("job", "apply", "--dry-run")
    told = workspace.ok("job", "apply", "--dry-run")
    assert told.err == "Dry run: nothing was changed.\n"
    assert workspace.content() == before
    assert workspace.data("job", "apply") == planned


def test_a_dry_run_does_not_even_make_the_database(empty: Workspace) -> None:
    empty.file.write_text("jobs: {a: {command: b}}\n")
    for words in (["job", "apply"], ["job", "add", "b", "--", "c"]):
        ended = empty.run(*words[:2], "--dry-run", *words[2:], "-o", "plain")
        assert ended.code == 5
        assert "tsuzuki db upgrade" in ended.err
    assert list(empty.content()) == ["tsuzuki.yaml"]


def test_apply_refuses_a_name_that_a_job_of_the_database_has(workspace: Workspace) -> None:
    workspace.define("by-hand", {"command": ["true"]})
    workspace.append(BY_HAND + NIGHTLY)
    before = workspace.content()
    ended = workspace.run("job", "apply", "-o", "json")
    assert (ended.code, ended.error["code"]) == (6, "job_name_taken")
    assert workspace.content() == before
    assert workspace.job("nightly")["sync_state"] == "not applied"


def test_without_a_file_there_is_nothing_to_apply(empty: Workspace) -> None:
    empty.ok("db", "upgrade")
    ended = empty.run("job", "apply", "-o", "json")
    assert (ended.code, ended.error["code"]) == (3, "no_file")
    assert empty.data("job", "ls") == []


def test_a_job_gone_from_the_file_is_listed_until_it_is_applied(workspace: Workspace) -> None:
    workspace.file.write_text("jobs: {}\n")
    (hello,) = workspace.data("job", "ls")
    assert hello["sync_state"] == "removed from the file"
    workspace.ok("job", "rm", "hello", "--yes")
    assert workspace.data("job", "ls") == []


def test_the_workspace_is_found_from_a_folder_inside_it(workspace: Workspace) -> None:
    (workspace.folder / "a/b").mkdir(parents=True)
    ended = workspace.ok("job", "ls", "-o", "plain")
    inside = Workspace(workspace.folder / "a/b", workspace.capsys)
    assert inside.ok("job", "ls", "-o", "plain").out == ended.out
    assert inside.content() == {}


def test_jobs_are_the_same_on_either_database(workspace: Workspace, database_url: str) -> None:
    here = {"TSUZUKI_DATABASE_URL": database_url}
    assert workspace.data("job", "ls", **here)[0]["sync_state"] == "not applied"
    assert workspace.data("job", "apply", **here)[0]["change"] == "add"
    workspace.ok(*"job add other --daily-at 07:00 -- echo".split(), **here)
    assert [job["sync_state"] for job in workspace.data("job", "ls", **here)] == ["applied"] * 2
    workspace.ok("job", "rm", "other", "--yes", **here)
    assert [job["name"] for job in workspace.data("job", "ls", **here)] == ["hello"]
    actions = [entry["action"] for entry in workspace.data("audit", "ls", **here)]
    assert actions == ["job.remove", "job.add", "job.add"]


@pytest.mark.parametrize("verb", ["show", "next", "explain"])
def test_a_command_that_sees_a_difference_says_what_to_run(workspace: Workspace, verb: str) -> None:
    assert "job apply" not in workspace.ok("job", verb, "hello").err
    workspace.append(NIGHTLY)
    assert "tsuzuki job apply" in workspace.ok("job", verb, "nightly").err


def test_running_a_job_applies_the_file_and_says_so(workspace: Workspace) -> None:
    workspace.append(NIGHTLY)
    told = workspace.ok("job", "run", "nightly")
    assert "Applied changes from the file: nightly." in told.err
    assert "Applied" not in workspace.ok("job", "run", "nightly").err


def test_a_job_that_is_not_in_the_file_any_more_is_said_to_be_removed(workspace: Workspace) -> None:
    before = workspace.file.read_text()
    workspace.append(NIGHTLY)
    workspace.ok("job", "apply")
    workspace.file.write_text(before)
    told = workspace.ok("job", "run", "hello").err
    assert "Deleted jobs that are no longer in the file: nightly." in told
    assert "Applied" not in told
