"""Jobs come and go, and the file says nothing else differently."""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from config.commented_file import FILE, data
from tsuzuki.config import InvalidFile, load_configuration
from tsuzuki.config.edit import add_job, remove_job, set_enabled, update_job
from tsuzuki.model.errors import ConfigurationError, Conflict, NotFound, UsageError
from tsuzuki.model.job import JobSpec


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tsuzuki.yaml"
    path.write_text(FILE)
    return path


def test_a_job_is_appended_in_the_manner_of_the_others(path: Path) -> None:
    body = {"command": ["sleep", "5"], "schedule": {"every": "10m"}, "description": "Rest: a bit"}
    spec = add_job(path, "rest", body)
    assert spec.options["argv"] == ["sleep", "5"]
    assert path.read_text() == FILE.replace(
        "    # The end of backup.\n",
        "    # The end of backup.\n"
        "\n"
        "  rest:\n"
        '    command: [sleep, "5"]\n'
        "    schedule: {every: 10m}\n"
        '    description: "Rest: a bit"\n',
    )


def test_jobs_without_blank_lines_between_them_get_none(path: Path) -> None:
    path.write_text("jobs:\n    a:\n        command: x\n    b:\n        command: y\n")
    add_job(path, "c", {"command": "z"})
    assert path.read_text().endswith("    b:\n        command: y\n    c:\n        command: z\n")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("", "jobs:\n  it:\n    command: x\n"),
        ("# note\n", "# note\n\njobs:\n  it:\n    command: x\n"),
        ("---\n", "---\n\njobs:\n  it:\n    command: x\n"),
        ("timezone: UTC", "timezone: UTC\n\njobs:\n  it:\n    command: x"),
        ("jobs:\n", "jobs:\n  it:\n    command: x\n"),
        ("jobs:", "jobs:\n  it:\n    command: x"),
        ("jobs: # none yet\nversion: 1\n", "jobs: # none yet\n  it:\n    command: x\nversion: 1\n"),
        ("jobs: {}\n", "jobs:\n  it:\n    command: x\n"),
        ("jobs: {}  # none yet\n", "jobs:  # none yet\n  it:\n    command: x\n"),
        ("jobs: null\n# end\n", "jobs:\n  it:\n    command: x\n# end\n"),
        ("jobs:\n  # later\n", "jobs:\n  # later\n\n  it:\n    command: x\n"),
        ("jobs: {a: {command: b}}\n", "jobs: {a: {command: b}, it: {command: x}}\n"),
        ("{jobs: {a: {command: b}}}\n", "{jobs: {a: {command: b}, it: {command: x}}}\n"),
        ("{version: 1}\n", "{version: 1, jobs: {it: {command: x}}}\n"),
        ("{jobs: {}}\n", "{jobs: {it: {command: x}}}\n"),
        ("jobs:\n  {}\n", "jobs: {it: {command: x}}\n"),
        ("version: 1\n...\n", "version: 1\n\njobs:\n  it:\n    command: x\n...\n"),
        ("version: 1\r\njobs:\r\n", "version: 1\r\njobs:\r\n  it:\r\n    command: x\r\n"),
        ("\ufeffjobs:\n", "\ufeffjobs:\n  it:\n    command: x\n"),
    ],
)
def test_the_first_job_finds_its_place_in_any_file(path: Path, before: str, after: str) -> None:
    path.write_bytes(before.encode())
    add_job(path, "it", {"command": "x"})
    assert path.read_bytes() == after.encode()


def test_a_name_that_is_taken_is_a_conflict_with_its_place(path: Path) -> None:
    with pytest.raises(Conflict, match="already is a job `hello`") as caught:
        add_job(path, "hello", {"command": "x"})
    assert str(caught.value.place) == f"{path}:6:3"
    assert path.read_text() == FILE


def test_a_job_goes_with_what_is_inside_it_and_nothing_else(path: Path) -> None:
    remove_job(path, "backup")
    start = FILE.index("  backup:")
    end = FILE.index("\n# At the bottom.")
    assert path.read_text() == FILE[:start] + FILE[end:]
    remove_job(path, "hello")
    assert data(path) == {"timezone": "UTC", "jobs": None}
    for comment in ("# At the top.", "# About hello.", "# About backup.", "# At the bottom."):
        assert comment in path.read_text()


def test_a_removed_job_leaves_one_blank_line_not_two(path: Path) -> None:
    path.write_text("jobs:\n  a: {command: x}\n\n  b: {command: x}\n\n  c: {command: x}\n")
    remove_job(path, "b")
    assert path.read_text() == "jobs:\n  a: {command: x}\n\n  c: {command: x}\n"
    remove_job(path, "c")
    assert path.read_text() == "jobs:\n  a: {command: x}\n"


@pytest.mark.parametrize(
    ("name", "after"),
    [
        ("a", "jobs: {b: {command: y}, c: {command: z}}\n"),
        ("b", "jobs: {a: {command: x}, c: {command: z}}\n"),
        ("c", "jobs: {a: {command: x}, b: {command: y}}\n"),
    ],
)
def test_jobs_in_braces_are_removed_with_their_comma(path: Path, name: str, after: str) -> None:
    path.write_text("jobs: {a: {command: x}, b: {command: y}, c: {command: z}}\n")
    remove_job(path, name)
    assert path.read_text() == after


@pytest.mark.parametrize("name", ["helo", "nothing"])
@pytest.mark.parametrize(
    "act",
    [
        lambda path, name: update_job(path, name, {"timeout": 5}),
        lambda path, name: set_enabled(path, name, False),
        remove_job,
    ],
)
def test_a_job_that_does_not_exist_is_not_found(
    path: Path, name: str, act: Callable[[Path, str], object]
) -> None:
    with pytest.raises(NotFound) as caught:
        act(path, name)
    assert caught.value.hint is not None
    assert ('Did you mean "hello"?' in caught.value.hint) == (name == "helo")
    assert path.read_text() == FILE


@pytest.mark.parametrize(
    "act",
    [
        lambda path: add_job(path, "new", {"command": "x", "priority": "high"}),
        lambda path: add_job(path, "not a name", {"command": "x"}),
        lambda path: update_job(path, "hello", {"priority": "high"}),
        lambda path: update_job(path, "hello", {}, removals=["command"]),
    ],
)
def test_an_invalid_job_is_refused_and_nothing_is_written(
    path: Path, act: Callable[[Path], JobSpec]
) -> None:
    with pytest.raises(InvalidFile) as caught:
        act(path)
    assert caught.value.place is None, "the text it would stand in was never written"
    assert path.read_text() == FILE


def test_a_fault_that_was_there_before_is_told_where_it_stands(path: Path) -> None:
    path.write_text("jobs:\n  a:\n    command: x\n  b:\n    comand: y\n")
    with pytest.raises(InvalidFile) as caught:
        update_job(path, "a", {"timeout": 5, "tags": ["t"]})
    assert str(caught.value.place) == f"{path}:5:5"


def test_a_faulty_job_can_be_removed(path: Path) -> None:
    path.write_text("jobs:\n  a:\n    command: x\n  b:\n    comand: y\n")
    remove_job(path, "b")
    assert path.read_text() == "jobs:\n  a:\n    command: x\n"


def test_an_anchor_that_is_still_referred_to_is_not_removed(path: Path) -> None:
    text = "jobs:\n  a: &a\n    command: x\n  b: *a\n"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="refers to nothing"):
        remove_job(path, "a")
    assert path.read_text() == text
    update_job(path, "b", {"timeout": "1m"})
    assert path.read_text() == text.replace("*a", "{command: x, timeout: 1m}")


def test_a_body_that_is_not_json_is_refused(path: Path) -> None:
    with pytest.raises((UsageError, InvalidFile)):
        add_job(path, "new", {"command": "x", "arguments": {"a": {1, 2}}})
    assert path.read_text() == FILE


def test_long_values_are_set_out_over_several_lines(path: Path) -> None:
    arguments = {"recipients": [f"person-{n}@example.com" for n in range(6)], "subject": "News"}
    add_job(path, "mail", {"command": "mail", "arguments": arguments})
    assert data(path)["jobs"]["mail"]["arguments"] == arguments
    assert max(map(len, path.read_text().splitlines())) <= 100
    assert "    arguments:\n      recipients:\n        - person-0@example.com\n" in path.read_text()


def test_mode_and_link_of_the_file_are_kept(tmp_path: Path) -> None:
    real = tmp_path / "real" / "jobs.yaml"
    real.parent.mkdir()
    real.write_text(FILE)
    real.chmod(0o640)
    link = tmp_path / "tsuzuki.yaml"
    link.symlink_to(real)
    set_enabled(link, "hello", False)
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert data(real)["jobs"]["hello"]["enabled"] is False
    assert sorted(entry.name for entry in real.parent.iterdir()) == [".jobs.yaml.lock", "jobs.yaml"]


def test_a_missing_file_is_told_and_leaves_no_lock_behind(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        remove_job(tmp_path / "tsuzuki.yaml", "x")
    assert list(tmp_path.iterdir()) == []


def test_an_edited_file_loads(path: Path) -> None:
    add_job(path, "rest", {"command": ["sleep", "5"]})
    jobs = load_configuration(environ={}, cwd=path.parent).jobs
    assert [job.name for job in jobs] == ["hello", "backup", "rest"]


def test_a_rehearsal_finds_the_same_faults_and_writes_nothing(path: Path) -> None:
    assert add_job(path, "rest", {"command": "sleep 5"}, dry_run=True).name == "rest"
    with pytest.raises(Conflict):
        add_job(path, "hello", {"command": "x"}, dry_run=True)
    assert path.read_text() == FILE
    assert [entry.name for entry in path.parent.iterdir()] == ["tsuzuki.yaml"]
