"""Adding and changing jobs: in the file, with its comments, and in the database at once."""

import pytest

from support.workspace import Workspace
from tsuzuki.config.starter_file import starter_text
from tsuzuki.wiring.collectors import installed_collectors

STARTER = starter_text(installed_collectors().kinds)

COMMENTED = """\
# at the top
version: 1

jobs:
  # about the first
  first:
    command: [one]        # its command
    schedule: {every: 1h} # its time
    # about what follows
    timeout: 5m

  # about the second
  second:
    command: [two]
    # the end of the second
# at the bottom
"""


def comments(text: str) -> list[str]:
    return [line.split("#", 1)[1] for line in text.splitlines() if "#" in line]


def test_a_command_behind_two_dashes_is_taken_word_by_word(workspace: Workspace) -> None:
    ended = workspace.ok(
        *["job", "add", "greet", "--every", "10m", "--", "echo", "-n", "it's me", "--every"]
    )
    assert ended.err == f"Added 'greet' to {workspace.file}.\n"
    assert ended.out.splitlines()[:3] == [
        "NAME      greet",
        """RUNS      echo -n 'it'"'"'s me' --every""",
        "SCHEDULE  every 10 minutes",
    ]
    assert workspace.file.read_text() == STARTER + (
        '\n  greet:\n    command: [echo, "-n", "it\'s me", "--every"]\n    schedule: {every: 10m}\n'
    )
    assert workspace.job("greet")["sync_state"] == "applied"


@pytest.mark.parametrize("output", ["table", "json", "jsonl", "plain"])
@pytest.mark.parametrize("verb", ["add", "update"])
def test_a_dry_run_shows_what_would_be_and_writes_nothing(
    verb: str, output: str, workspace: Workspace
) -> None:
    before = workspace.content()
    name = "hello" if verb == "update" else "other"
    ended = workspace.ok(
        *["job", verb, name, "--every", "3h", "--dry-run", "-o", output, "--", "echo", "bye"]
    )
    assert "bye" in ended.out
    assert "every 3 hours" in ended.out
    assert workspace.content() == before
    assert not list(workspace.folder.glob(".*.lock"))


@pytest.mark.parametrize(
    ("words", "missing"),
    [
        ("-- nosuchprogram x", "nosuchprogram"),
        ("-- ./nosuch.sh", "nosuch.sh"),
        ("-- ./notes.txt", "notes.txt"),
        ("--set cwd=inner -- ./run.sh", "inner/run.sh"),
        ("--env PATH=/nowhere -- true", "true"),
        ("--python nosuch.module:f", "nosuch.module"),
        ("--python package.nosuch:f", "package.nosuch"),
        ("--python package.reports:nosuch", "nosuch"),
    ],
)
@pytest.mark.parametrize("verb", ["add other", "update hello"])
def test_a_program_or_function_that_does_not_exist_here_is_warned_of(
    verb: str, words: str, missing: str, workspace: Workspace
) -> None:
    write_programs(workspace)
    ended = workspace.ok("job", *verb.split(), *words.split())
    (warning,) = (line for line in ended.err.splitlines() if line.startswith("warning: "))
    assert missing in warning


@pytest.mark.parametrize(
    "words",
    [
        "-- true",
        "-- ./run.sh",
        "-- /bin/sh",
        "--set cwd=inner -- ../run.sh",
        "--env PATH=${TOOLS} -- nosuchprogram",
        "--python package.reports:send",
        "--python package.reports:imported",
        "--python package.reports:Report.send",
        "--python package.dynamic:anything",
        "--python json:dumps",
        "--type verify",
    ],
)
def test_what_exists_here_or_is_known_to_the_run_alone_is_not_warned_of(
    words: str, workspace: Workspace
) -> None:
    write_programs(workspace)
    assert "warning" not in workspace.ok("job", "add", "other", *words.split()).err
    assert not (workspace.folder / "imported").exists()


def write_programs(workspace: Workspace) -> None:
    """A script, a file that cannot be executed, and a package that says when it is imported."""
    folder = workspace.folder
    (folder / "notes.txt").touch()
    (folder / "run.sh").touch(mode=0o755)
    (folder / "inner").mkdir()
    (folder / "package").mkdir()
    for name, text in {
        "__init__": "open('imported', 'w').close()",
        "reports": "from os import path as imported\ndef send(): ...\nclass Report:\n  def send(): ...",
        "dynamic": "def __getattr__(name): ...",
    }.items():
        (folder / "package" / f"{name}.py").write_text(text)


def test_a_dry_run_refuses_what_the_real_one_would(workspace: Workspace) -> None:
    assert workspace.run(*"job add hello --dry-run -- x".split()).code == 6
    assert workspace.run(*"job add other --dry-run --set priority=high -- x".split()).code == 3
    assert workspace.run(*"job update unknown --dry-run --every 1h".split()).code == 4
    assert workspace.run(*"job update hello --dry-run --timezone Nowhere".split()).code == 3


@pytest.mark.parametrize(
    "words",
    [
        "add",
        "add other",
        "add other --every 10m",
        "add other --command x --python a:b",
        "add other --command x -- y",
        "add other --every 10m --cron * -- x",
        "add other --env A -- x",
        "add other --set =1 -- x",
        "add other --set a..b=1 -- x",
        "add other --set tags=[a -- x",
        "add other --max-retries many -- x",
        "update",
        "update hello",
        "update hello --dry-run",
        "update hello --unset tmeout",
        "update hello --unset backoff.intial",
        "update hello --unset schedule.evry",
        "update hello --unset .",
        "enable",
        "disable",
        "rm",
        "rm hello",
        "rmm hello",
        "ls hello",
    ],
)
def test_a_call_that_makes_no_sense_is_a_usage_error_and_changes_nothing(
    words: str, workspace: Workspace
) -> None:
    before = workspace.content()
    ended = workspace.run("-o", "json", "job", *words.split())
    assert ended.code == 2
    assert ended.error["hint"]
    assert workspace.content() == before


def test_a_new_schedule_replaces_the_old_one_and_keeps_its_zone(workspace: Workspace) -> None:
    workspace.ok(*"job update hello --daily-at 07:00 --timezone Asia/Tokyo".split())
    workspace.ok("job", "update", "hello", "--schedule", "weekdays at 09:00")
    assert workspace.job("hello")["schedule"] == {"weekdays_at": "09:00", "timezone": "Asia/Tokyo"}
    workspace.ok("job", "update", "hello", "--set", 'schedule={daily_at: "08:00"}')
    assert workspace.job("hello")["schedule"] == {"daily_at": "08:00", "timezone": "UTC"}


def test_a_zone_can_be_given_to_a_schedule_written_in_words(workspace: Workspace) -> None:
    workspace.file.write_text("jobs: {it: {command: x, schedule: daily at 07:00}}\n")
    workspace.ok(*"job update it --timezone Asia/Tokyo".split())
    assert workspace.job("it")["schedule"] == {"daily_at": "07:00", "timezone": "Asia/Tokyo"}


def test_another_thing_to_run_replaces_the_old_one(workspace: Workspace) -> None:
    workspace.ok("job", "update", "hello", "--python", "a.b:c")
    assert workspace.job("hello")["handler"] == "python"
    workspace.ok("job", "update", "hello", "--", "echo", "back")
    assert workspace.job("hello")["options"]["argv"] == ["echo", "back"]


def test_keys_are_taken_out_and_set_one_by_one(workspace: Workspace) -> None:
    workspace.ok(*"job update hello --set backoff={initial: 5s, cap: 10m}".split(" ", 4))
    workspace.ok(*"job update hello --unset backoff.initial --unset schedule --unset tags".split())
    job = workspace.job("hello")
    assert job["schedule"] is None
    assert (job["retry"]["initial_seconds"], job["retry"]["cap_seconds"]) == (10.0, 600.0)
    workspace.ok(*"job update hello --unset backoff.cap".split())
    assert "\n    backoff:" not in workspace.file.read_text()


def test_an_update_tells_what_changed_from_which_value_to_which(workspace: Workspace) -> None:
    words = "job update hello --timeout 5m --disabled --set backoff.initial=5s".split()
    told = workspace.ok(*words, "--dry-run").err.splitlines()
    assert told[0] == "Dry run: nothing was written."
    assert sorted(told[1:]) == [
        "  enabled: yes → no",
        "  retry.initial_seconds: 10 → 5",
        "  timeout_seconds: - → 300",
    ]
    assert workspace.ok(*words).err.splitlines() == ["Changed 'hello':", *told[1:]]


def test_an_update_that_changes_nothing_says_so(workspace: Workspace) -> None:
    before = workspace.content()
    ended = workspace.ok("job", "update", "hello", "--every", "10m")
    assert ended.err == "'hello' already has these values.\n"
    assert workspace.content() == before


@pytest.mark.parametrize(
    "words",
    [
        "add third --every 2h -- three",
        "update first --daily-at 07:00 --priority 5",
        "update second --description New --timeout 1h",
        "enable first",
        "disable first second",
    ],
)
def test_every_comment_survives_an_edit(words: str, workspace: Workspace) -> None:
    workspace.file.write_text(COMMENTED)
    workspace.ok("job", *words.split())
    assert comments(workspace.file.read_text()) == comments(COMMENTED)
    assert all(job["sync_state"] == "applied" for job in workspace.data("job", "ls"))


def test_a_removed_job_takes_only_the_comments_inside_it(workspace: Workspace) -> None:
    workspace.file.write_text(COMMENTED)
    workspace.ok("job", "rm", "first", "--yes")
    assert comments(workspace.file.read_text()) == [
        " at the top",
        " about the first",
        " about the second",
        " the end of the second",
        " at the bottom",
    ]


def test_a_name_that_is_taken_is_a_conflict_that_tells_where(workspace: Workspace) -> None:
    before = workspace.content()
    ended = workspace.run(*"-o json job add hello -- x".split())
    assert (ended.code, ended.error["code"]) == (6, "job_exists")
    assert ended.error["file"] == str(workspace.file)
    assert ended.error["line"] == STARTER[: STARTER.index("  hello:")].count("\n") + 1
    assert workspace.content() == before


def test_nothing_is_written_when_the_database_could_not_follow(workspace: Workspace) -> None:
    workspace.define("taken", {"command": ["true"]})
    assert workspace.run(*"job add taken -- x".split()).code == 6
    workspace.append("  taken: {command: x}\n")
    before = workspace.content()
    assert workspace.run(*"job add other -- x".split()).code == 6
    assert workspace.run(*"job update hello --every 1h".split()).code == 6
    assert workspace.content() == before


def test_a_command_in_quotes_is_refused_unless_a_program_has_that_name(
    workspace: Workspace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(workspace.folder)
    refused = workspace.run("job", "add", "backup", "--", "my backup.sh")
    assert refused.code == 2
    assert "hint: Remove the quotes: -- my backup.sh" in refused.err
    (workspace.folder / "my backup.sh").touch()
    workspace.ok("job", "add", "backup", "--", "my backup.sh")
