"""Flag over environment over file over default; the file is found from any folder below it."""

from pathlib import Path

import pytest

from config.yaml.parse_count import count_parses
from tsuzuki.config import Configuration, load_configuration
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.wiring.application import opened


def load(cwd: Path, environ: dict[str, str] | None = None, **flags: object) -> Configuration:
    return load_configuration(environ=environ or {}, cwd=cwd, **flags)  # type: ignore[arg-type]


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    return tmp_path


def write(folder: Path, text: str, name: str = "tsuzuki.yaml") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / name
    path.write_text(text)
    return path


def test_without_a_file_there_are_defaults_and_no_jobs(workspace: Path) -> None:
    assert load(workspace) == Configuration(
        workspace=workspace,
        file=None,
        database_url=f"sqlite:///{workspace}/tsuzuki.db",
        redis_url=None,
        timezone="UTC",
        log_archive=None,
        jobs=(),
    )


def test_the_file_is_found_in_the_folder_or_the_nearest_one_above(workspace: Path) -> None:
    outer = write(workspace, "timezone: Asia/Tokyo\n")
    deep = workspace / "a" / "b"
    deep.mkdir(parents=True)
    assert load(workspace).file == outer
    assert load(deep).file == outer
    assert load(deep).workspace == workspace
    inner = write(workspace / "a", "timezone: Europe/Berlin\n")
    assert load(deep).file == inner
    assert load(deep).timezone == "Europe/Berlin"


def test_a_file_named_by_flag_goes_before_one_named_by_variable(workspace: Path) -> None:
    write(workspace, "timezone: UTC\n")
    by_variable = write(workspace / "x", "timezone: Asia/Tokyo\n", "v.yaml")
    by_flag = write(workspace / "y", "timezone: Europe/Berlin\n", "f.yaml")
    environ = {"TSUZUKI_CONFIG": "x/v.yaml"}
    assert load(workspace, environ).file == by_variable
    found = load(workspace, environ, file=Path("y/f.yaml"))
    assert found.file == by_flag
    assert found.workspace == workspace / "y"
    assert found.database_url == f"sqlite:///{workspace}/y/tsuzuki.db"


def test_a_named_file_that_does_not_exist_is_an_error(workspace: Path) -> None:
    write(workspace, "timezone: UTC\n")
    with pytest.raises(ConfigurationError, match="does not exist"):
        load(workspace, file=Path("other.yaml"))
    with pytest.raises(ConfigurationError, match="does not exist"):
        load(workspace, {"TSUZUKI_CONFIG": "other.yaml"})


def test_the_workspace_of_a_linked_file_is_where_the_link_is(workspace: Path) -> None:
    real = write(workspace / "elsewhere", "timezone: UTC\n", "real.yaml")
    (workspace / "here").mkdir()
    (workspace / "here" / "tsuzuki.yaml").symlink_to(real)
    assert load(workspace / "here").workspace == workspace / "here"


def test_flag_over_environment_over_file_over_default(workspace: Path) -> None:
    file_url = "sqlite:////from/file.db"
    write(workspace, f"database_url: {file_url}\n")
    environ = {"TSUZUKI_DATABASE_URL": "sqlite:////from/environment.db"}
    flag = "sqlite:////from/flag.db"
    assert load(workspace).database_url == file_url
    assert load(workspace, environ).database_url == "sqlite:////from/environment.db"
    assert load(workspace, environ, database_url=flag).database_url == flag


def test_a_relative_database_is_beside_the_file_wherever_it_is_given(workspace: Path) -> None:
    write(workspace, "jobs:\n")
    deep = workspace / "deep"
    deep.mkdir()
    absolute = f"sqlite:///{workspace}/data/x.db"
    assert load(deep, database_url="sqlite:///data/x.db").database_url == absolute
    environ = {"TSUZUKI_DATABASE_URL": "sqlite:///data/x.db"}
    assert load(deep, environ).database_url == absolute


def test_an_empty_variable_counts_as_unset(workspace: Path) -> None:
    environ = dict.fromkeys(
        ("TSUZUKI_CONFIG", "TSUZUKI_DATABASE_URL", "TSUZUKI_DATABASE_URL_FILE"), ""
    )
    assert load(workspace, environ) == load(workspace)


def test_variables_in_urls_are_filled_in(workspace: Path) -> None:
    write(
        workspace,
        "database_url: postgresql://me:${PASSWORD}@host/db\n"
        "redis_url: ${REDIS:-redis://localhost}\n"
        "log_archive: ${LOGS:-./.tsuzuki/logs}\n",
    )
    found = load(workspace, {"PASSWORD": "s3cret"})
    assert found.database_url == "postgresql+psycopg://me:s3cret@host/db"
    assert found.redis_url == "redis://localhost"
    assert found.log_archive == f"{workspace}/.tsuzuki/logs"
    assert "s3cret" not in repr(found)
    assert load(workspace, {"PASSWORD": "x", "LOGS": "s3://b/l"}).log_archive == "s3://b/l"


def test_a_missing_variable_is_named_at_its_place(workspace: Path) -> None:
    path = write(workspace, "timezone: UTC\ndatabase_url: ${DATABASE}\n")
    with pytest.raises(ConfigurationError, match="DATABASE is not set") as caught:
        load(workspace)
    assert str(caught.value.place) == f"{path}:2:15"


def test_a_missing_variable_does_not_matter_where_it_is_overridden(workspace: Path) -> None:
    write(workspace, "database_url: ${DATABASE}\n")
    environ = {"TSUZUKI_DATABASE_URL": "sqlite:////x.db"}
    assert load(workspace, environ).database_url == "sqlite:////x.db"


@pytest.mark.parametrize(
    ("environ", "flags", "name"),
    [
        ({}, {"database_url": "mysql://h"}, "--database-url"),
        ({}, {"database_url": ""}, "--database-url"),
        ({"TSUZUKI_DATABASE_URL": "mysql://h"}, {}, "TSUZUKI_DATABASE_URL"),
        ({"TSUZUKI_REDIS_URL": "http://h"}, {}, "TSUZUKI_REDIS_URL"),
    ],
)
def test_a_url_we_do_not_speak_is_told_by_the_name_it_was_given_under(
    workspace: Path, environ: dict[str, str], flags: dict[str, str], name: str
) -> None:
    with pytest.raises(ConfigurationError, match=f"^{name} must be ") as caught:
        load(workspace, environ, **flags)
    assert caught.value.hint


def test_a_url_in_the_file_that_we_do_not_speak_is_told_at_its_place(workspace: Path) -> None:
    path = write(workspace, "redis_url: redis://ok\ndatabase_url: mysql://host/db\n")
    with pytest.raises(ConfigurationError, match=r"^`database_url` must be") as caught:
        load(workspace)
    assert str(caught.value.place) == f"{path}:2:15"


def test_a_relative_current_folder_still_gives_absolute_paths(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(workspace, "jobs:\n")
    monkeypatch.chdir(workspace)
    assert load(Path()).workspace == workspace


def test_one_command_parses_each_text_of_the_file_once(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write(workspace, "jobs:\n  hello:\n    command: echo\n")
    before = path.read_text()
    parsed = count_parses(monkeypatch)
    with opened(environ={}, cwd=workspace) as application:
        application.jobs.apply()
        application.jobs.add("other", {"command": "ls"})
        assert [view.name for view in application.jobs.find()] == ["hello", "other"]
    assert parsed == [before, path.read_text()]
