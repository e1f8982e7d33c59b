"""The file of a new workspace."""

import re
from pathlib import Path

import pytest
from pydantic import BaseModel

from tsuzuki.config import JobKind, load_configuration, write_starter
from tsuzuki.config.starter_file import starter_text
from tsuzuki.model.errors import Conflict, Unreachable
from tsuzuki.wiring.collectors import installed_collectors


def test_the_starter_has_one_job_that_echoes_every_ten_minutes(tmp_path: Path) -> None:
    write_starter(tmp_path / "tsuzuki.yaml", kinds={})
    (job,) = load_configuration(environ={}, cwd=tmp_path).jobs
    assert job.name == "hello"
    assert job.options["argv"][0] == "echo"
    assert job.schedule is not None
    assert job.schedule.describe() == "every 10 minutes"


def test_every_commented_example_works_when_it_is_uncommented(tmp_path: Path) -> None:
    path = tmp_path / "tsuzuki.yaml"
    head, jobs = starter_text({}).split("jobs:\n")
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


def test_the_commented_job_of_every_collector_works_when_it_is_uncommented(tmp_path: Path) -> None:
    kinds = installed_collectors().kinds
    (written, *_) = write_starter(tmp_path / "tsuzuki.yaml", kinds=kinds)
    text = written.read_text()
    written.write_text(re.sub(r"(?m)^  # (?=[a-z-]+:|  )", "  ", text))
    found = load_configuration(environ={}, cwd=tmp_path, kinds=kinds)
    assert {job.handler for job in found.jobs} == {"command", "python", *kinds}
    assert max(map(len, text.splitlines())) <= 100


def test_the_section_of_a_kind_is_a_comment_before_the_jobs(tmp_path: Path) -> None:
    class Section(BaseModel):
        base_url: str

    section = "weather:\n  base_url: http://127.0.0.1\n"
    kind = JobKind(
        name="weather", options_model=BaseModel, section_model=Section, starter_section=section
    )
    (written, *_) = write_starter(tmp_path / "tsuzuki.yaml", kinds={"weather": kind})
    commented = "# weather:\n#   base_url: http://127.0.0.1\n\njobs:\n"
    assert commented in written.read_text()
    written.write_text(written.read_text().replace(commented, f"{section}\njobs:\n"))
    found = load_configuration(environ={}, cwd=tmp_path, kinds={"weather": kind})
    assert found.section("weather") == Section(base_url="http://127.0.0.1")


def test_the_starter_stays_within_the_width_of_a_terminal_and_links_nowhere() -> None:
    assert max(map(len, starter_text({}).splitlines())) <= 100
    assert "http" not in starter_text({})


def test_an_existing_file_is_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "tsuzuki.yaml"
    path.write_text("mine\n")
    with pytest.raises(Conflict, match="already exists"):
        write_starter(path, kinds={})
    assert path.read_text() == "mine\n"


def test_a_folder_that_does_not_exist_is_told(tmp_path: Path) -> None:
    with pytest.raises(Unreachable, match="cannot write"):
        write_starter(tmp_path / "nowhere" / "tsuzuki.yaml", kinds={})
