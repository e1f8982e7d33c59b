"""The text of a job that is inserted or deleted, in every layout of the file."""

from pathlib import Path

import pytest

from config.commented_file import FILE, data
from tsuzuki.config.edit import ConfigEditor


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tsuzuki.yaml"
    path.write_text(FILE)
    return path


def test_a_job_is_appended_in_the_manner_of_the_others(path: Path) -> None:
    body = {"command": ["sleep", "5"], "schedule": {"every": "10m"}, "description": "Rest: a bit"}
    spec = ConfigEditor(path).add_job("rest", body)
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
    ConfigEditor(path).add_job("c", {"command": "z"})
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
        ("{}\n", "{jobs: {it: {command: x}}}\n"),
        ("{jobs: {}}\n", "{jobs: {it: {command: x}}}\n"),
        ("jobs:\n  {}\n", "jobs: {it: {command: x}}\n"),
        ("version: 1\n...\n", "version: 1\n\njobs:\n  it:\n    command: x\n...\n"),
        ("version: 1\r\njobs:\r\n", "version: 1\r\njobs:\r\n  it:\r\n    command: x\r\n"),
        ("\ufeffjobs:\n", "\ufeffjobs:\n  it:\n    command: x\n"),
    ],
)
def test_the_first_job_finds_its_place_in_any_file(path: Path, before: str, after: str) -> None:
    path.write_bytes(before.encode())
    ConfigEditor(path).add_job("it", {"command": "x"})
    assert path.read_bytes() == after.encode()


def test_a_job_goes_with_what_is_inside_it_and_nothing_else(path: Path) -> None:
    ConfigEditor(path).remove_job("backup")
    start = FILE.index("  backup:")
    end = FILE.index("\n# At the bottom.")
    assert path.read_text() == FILE[:start] + FILE[end:]
    ConfigEditor(path).remove_job("hello")
    assert data(path) == {"timezone": "UTC", "jobs": None}
    for comment in ("# At the top.", "# About hello.", "# About backup.", "# At the bottom."):
        assert comment in path.read_text()


def test_a_removed_job_leaves_one_blank_line_not_two(path: Path) -> None:
    path.write_text("jobs:\n  a: {command: x}\n\n  b: {command: x}\n\n  c: {command: x}\n")
    ConfigEditor(path).remove_job("b")
    assert path.read_text() == "jobs:\n  a: {command: x}\n\n  c: {command: x}\n"
    ConfigEditor(path).remove_job("c")
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
    ConfigEditor(path).remove_job(name)
    assert path.read_text() == after
