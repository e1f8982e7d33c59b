"""Edits of jobs: what is refused, what is kept, what is written."""

import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from config.commented_file import FILE, data
from tsuzuki.config import InvalidFile, load_configuration
from tsuzuki.config.edit import ConfigEditor
from tsuzuki.model.errors import ConfigurationError, Conflict, NotFound, UsageError
from tsuzuki.model.job import JobSpec


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "tsuzuki.yaml"
    path.write_text(FILE)
    return path


def test_a_name_that_is_taken_is_a_conflict_with_its_place(path: Path) -> None:
    with pytest.raises(Conflict, match="a job named `hello` already exists") as caught:
        ConfigEditor(path).add_job("hello", {"command": "x"})
    assert str(caught.value.place) == f"{path}:6:3"
    assert path.read_text() == FILE


@pytest.mark.parametrize("name", ["helo", "nothing"])
@pytest.mark.parametrize(
    "act",
    [
        lambda path, name: ConfigEditor(path).update_job(name, {"timeout": 5}),
        lambda path, name: ConfigEditor(path).set_enabled(name, False),
        lambda path, name: ConfigEditor(path).remove_job(name),
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
        lambda path: ConfigEditor(path).add_job("new", {"command": "x", "priority": "high"}),
        lambda path: ConfigEditor(path).add_job("not a name", {"command": "x"}),
        lambda path: ConfigEditor(path).update_job("hello", {"priority": "high"}),
        lambda path: ConfigEditor(path).update_job("hello", {}, removals=["command"]),
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
        ConfigEditor(path).update_job("a", {"timeout": 5, "tags": ["t"]})
    assert str(caught.value.place) == f"{path}:5:5"


def test_a_faulty_job_can_be_removed(path: Path) -> None:
    path.write_text("jobs:\n  a:\n    command: x\n  b:\n    comand: y\n")
    ConfigEditor(path).remove_job("b")
    assert path.read_text() == "jobs:\n  a:\n    command: x\n"


def test_an_anchor_that_is_still_referred_to_is_not_removed(path: Path) -> None:
    text = "jobs:\n  a: &a\n    command: x\n  b: *a\n"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="refers to nothing"):
        ConfigEditor(path).remove_job("a")
    assert path.read_text() == text
    ConfigEditor(path).update_job("b", {"timeout": "1m"})
    assert path.read_text() == text.replace("*a", "{command: x, timeout: 1m}")


def test_a_body_that_is_not_json_is_refused(path: Path) -> None:
    with pytest.raises((UsageError, InvalidFile)):
        ConfigEditor(path).add_job("new", {"command": "x", "arguments": {"a": {1, 2}}})
    assert path.read_text() == FILE


def test_mode_and_link_of_the_file_are_kept(tmp_path: Path) -> None:
    real = tmp_path / "real" / "jobs.yaml"
    real.parent.mkdir()
    real.write_text(FILE)
    real.chmod(0o640)
    link = tmp_path / "tsuzuki.yaml"
    link.symlink_to(real)
    ConfigEditor(link).set_enabled("hello", False)
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert data(real)["jobs"]["hello"]["enabled"] is False
    assert sorted(entry.name for entry in real.parent.iterdir()) == [".jobs.yaml.lock", "jobs.yaml"]


def test_a_missing_file_is_told_and_leaves_no_lock_behind(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="does not exist"):
        ConfigEditor(tmp_path / "tsuzuki.yaml").remove_job("x")
    assert list(tmp_path.iterdir()) == []


def test_an_edited_file_loads(path: Path) -> None:
    ConfigEditor(path).add_job("rest", {"command": ["sleep", "5"]})
    jobs = load_configuration(environ={}, cwd=path.parent).jobs
    assert [job.name for job in jobs] == ["hello", "backup", "rest"]


def test_a_rehearsal_finds_the_same_faults_and_writes_nothing(path: Path) -> None:
    assert ConfigEditor(path).add_job("rest", {"command": "sleep 5"}, dry_run=True).name == "rest"
    with pytest.raises(Conflict):
        ConfigEditor(path).add_job("hello", {"command": "x"}, dry_run=True)
    assert path.read_text() == FILE
    assert [entry.name for entry in path.parent.iterdir()] == ["tsuzuki.yaml"]


@pytest.mark.parametrize("jobs", ["*base", "{<<: *base}"])
def test_a_job_that_is_taken_from_another_part_of_the_file_is_not_edited(
    path: Path, jobs: str
) -> None:
    text = f"base: &base {{it: {{command: x}}}}\njobs: {jobs}\n"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match="defined in another part of the file") as caught:
        ConfigEditor(path).remove_job("it")
    assert caught.value.specific_code == "config_uneditable"
    assert path.read_text() == text


def test_jobs_that_are_no_mapping_are_refused_at_their_place(path: Path) -> None:
    path.write_text("jobs: [it]\n")
    with pytest.raises(InvalidFile, match="`jobs` must be a mapping") as caught:
        ConfigEditor(path).remove_job("it")
    assert str(caught.value.place) == f"{path}:1:7"
