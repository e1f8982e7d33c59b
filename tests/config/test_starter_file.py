"""The file of a new workspace."""

import re
from pathlib import Path

import pytest

from tsuzuki.config import load_configuration, write_starter
from tsuzuki.config.starter_file import STARTER
from tsuzuki.model.errors import Conflict, Unreachable


def test_the_starter_has_one_job_that_echoes_every_ten_minutes(tmp_path: Path) -> None:
    write_starter(tmp_path / "tsuzuki.yaml", kinds={})
    (job,) = load_configuration(environ={}, cwd=tmp_path).jobs
    assert job.name == "hello"
    assert job.options["argv"][0] == "echo"
    assert job.schedule is not None
    assert job.schedule.describe() == "every 10 minutes"


def test_every_commented_example_works_when_it_is_uncommented(tmp_path: Path) -> None:
    path = tmp_path / "tsuzuki.yaml"
    head, jobs = STARTER.split("jobs:\n")
    examples = re.sub(r"(?m)^  # (?=[a-z]+:|  )", "  ", jobs)
    settings = re.sub(r"(?m)^# (?=(redis_url|log_archive|contact):)", "", head)
    settings = settings.replace("# database_url: postgresql", "database_url: postgresql")
    path.write_text(f"{settings}jobs:\n{examples}")
    environ = {"TSUZUKI_DATABASE_PASSWORD": "x", "TSUZUKI_REDIS_URL": "redis://localhost"}
    found = load_configuration(environ=environ, cwd=tmp_path)
    assert [job.name for job in found.jobs] == ["hello", "backup", "report", "invoice"]
    assert found.database_url == "postgresql+psycopg://tsuzuki:x@localhost/tsuzuki"
    assert found.contact == "me@example.org"
    assert found.log_archive == str(tmp_path / ".tsuzuki" / "logs")


def test_the_starter_stays_within_the_width_of_a_terminal_and_links_nowhere() -> None:
    assert max(map(len, STARTER.splitlines())) <= 100
    assert "http" not in STARTER


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "tsuzuki.yaml"
    path.write_text("mine\n")
    with pytest.raises(Conflict, match="already exists"):
        write_starter(path, kinds={})
    assert path.read_text() == "mine\n"


def test_a_folder_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="cannot be written"):
        write_starter(tmp_path / "nowhere" / "tsuzuki.yaml", kinds={})
