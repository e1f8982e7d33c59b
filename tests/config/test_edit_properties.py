"""In every layout of a file an edit touches the lines it is about, and no others.

An independent reader of YAML must find exactly what was meant in the result.
"""

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from config.random_config_files import COMMAND, VALUES, File, files
from tsuzuki.config.edit import ConfigEditor

CHANGES = st.sampled_from(sorted(VALUES)).flatmap(lambda key: st.tuples(st.just(key), VALUES[key]))

relaxed = settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


def written(folder: Path, file: File) -> Path:
    path = folder / "tsuzuki.yaml"
    path.write_bytes(file.content)
    return path


def jobs_of(file: File) -> dict[str, Any]:
    return {job.name: job.body for job in file.jobs}


def read_independently(path: Path) -> dict[str, Any]:
    data = YAML(typ="safe", pure=True).load(path.read_bytes().decode())
    return {str(name): body for name, body in (data["jobs"] or {}).items()}


def assert_untouched(file: File, path: Path, start: int, end: int) -> list[str]:
    """Outside of the lines from `start` to `end` nothing differs. Returns what is there now."""
    content = path.read_bytes().decode()
    assert ("\r\n" in content) == ("\r\n" in file.content.decode())
    old, new = file.lines, content.replace("\r\n", "\n").split("\n")
    behind = len(old) - end
    if file.ends_with_newline:
        assert new.pop() == ""
    elif not behind and new[-1] == "":
        new.pop()  # the line without an end is gone, the one before it has one
    assert new[:start] == old[:start]
    assert new[len(new) - behind :] == old[end:]
    return new[start : len(new) - behind]


@relaxed
@given(file=files(), change=CHANGES, data=st.data())
def test_setting_a_key_touches_only_that_key(
    tmp_path: Path, file: File, change: tuple[str, Any], data: st.DataObject
) -> None:
    path = written(tmp_path, file)
    job = data.draw(st.sampled_from(file.jobs))
    name, value = change
    ConfigEditor(path).update_job(job.name, {name: value})
    expected = jobs_of(file)
    expected[job.name] = {**job.body, name: value}
    assert read_independently(path) == expected
    key = next((key for key in job.keys if key.name == name), None)
    if key is None:
        end = file.start_of(job) + len(job.lines)
        assert len(assert_untouched(file, path, end, end)) >= 1
        return
    now = assert_untouched(file, path, *file.lines_of(job, key))
    kept = [line for line in key.lines if line.lstrip().startswith("# comment")]
    if isinstance(value, dict) and isinstance(key.value, dict) and value:
        assert [line for line in now if line in kept] == kept
    if key.is_inline and "# comment" in key.lines[0]:
        assert now[0].split("# comment")[-1] == key.lines[0].split("# comment")[-1]


@relaxed
@given(file=files(), data=st.data())
def test_removing_a_key_touches_only_that_key(
    tmp_path: Path, file: File, data: st.DataObject
) -> None:
    path = written(tmp_path, file)
    job = data.draw(st.sampled_from(file.jobs))
    key = data.draw(st.sampled_from(job.keys))
    if key.name == "command":
        return
    ConfigEditor(path).update_job(job.name, {}, [key.name])
    expected = jobs_of(file)
    del expected[job.name][key.name]
    assert read_independently(path) == expected
    assert assert_untouched(file, path, *file.lines_of(job, key)) == []


@relaxed
@given(file=files(), body=st.fixed_dictionaries({"command": COMMAND}, optional=VALUES))
def test_adding_a_job_only_adds_lines(tmp_path: Path, file: File, body: dict[str, Any]) -> None:
    path = written(tmp_path, file)
    ConfigEditor(path).add_job("new", body)
    assert read_independently(path) == {**jobs_of(file), "new": body}
    end = len(file.lines) - len(file.bottom)
    assert_untouched(file, path, end, end)


@relaxed
@given(file=files(), data=st.data())
def test_removing_a_job_takes_its_lines_and_at_most_a_blank_one(
    tmp_path: Path, file: File, data: st.DataObject
) -> None:
    path = written(tmp_path, file)
    job = data.draw(st.sampled_from(file.jobs))
    ConfigEditor(path).remove_job(job.name)
    expected = jobs_of(file)
    del expected[job.name]
    assert read_independently(path) == expected
    start = file.start_of(job)
    end = start + len(job.lines)
    above = start - 1 if file.lines[start - 1].strip() == "" else start
    assert assert_untouched(file, path, above, end) in ([], file.lines[above:start])
