"""A changed file is applied while an engine runs; an invalid one is told and changes nothing."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tsuzuki.model.errors import Unreachable
from tsuzuki.services import job_file
from tsuzuki.services.job_file import JobFile
from tsuzuki.wiring.application import Application, opened

FIRST = "jobs:\n  hello: {command: [echo, one]}\n"
SECOND = "jobs:\n  hello: {command: [echo, two]}\n  other: {command: [x]}\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """In a folder below one with another file, which must never be read."""
    (tmp_path / "tsuzuki.yaml").write_text("jobs:\n  stranger: {command: [x]}\n")
    (tmp_path / "inner").mkdir()
    file = tmp_path / "inner" / "tsuzuki.yaml"
    file.write_text(FIRST)
    return file


@pytest.fixture
def application(file: Path, caplog: pytest.LogCaptureFixture) -> Iterator[Application]:
    with ExitStack() as stack:
        stack.enter_context(caplog.at_level(logging.INFO, logger="tsuzuki"))
        application = stack.enter_context(opened(cwd=file.parent, environ={}))
        application.jobs.apply()
        yield application


def look(job_file: JobFile) -> None:
    """Often enough that a change is seen, and seen to have settled."""
    for _ in range(3):
        job_file.tick()


def commands(application: Application) -> dict[str, str]:
    """What the database holds."""
    return {
        view.name: view.job.spec.options["argv"][-1]
        for view in application.jobs.find()
        if view.job is not None
    }


def test_a_changed_file_is_applied_and_audited(
    application: Application, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text(SECOND)
    look(application.job_file)
    assert commands(application) == {"hello": "two", "other": "x"}
    newest = [entry.action for entry in application.audit.find(limit=2)]
    assert sorted(newest) == ["job.add", "job.change"]
    assert "job from the file applied job=hello change=change" in caplog.text


def test_a_file_is_not_applied_while_it_may_still_be_written(
    application: Application, file: Path
) -> None:
    file.write_text(SECOND)
    application.job_file.tick()
    assert commands(application) == {"hello": "one"}


def test_an_invalid_file_is_told_once_and_the_jobs_stay(
    application: Application, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text("jobs:\n  hello: {comand: [echo, two]}\n")
    look(application.job_file)
    look(application.job_file)
    warnings = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert len(warnings) == 1
    assert f"{file}:2:" in warnings[0].getMessage()
    assert "command" in warnings[0].getMessage()
    file.write_text(FIRST)
    look(application.job_file)
    assert commands(application) == {"hello": "one"}


def test_a_file_that_is_gone_changes_nothing(application: Application, file: Path) -> None:
    file.unlink()
    look(application.job_file)
    file.write_text(SECOND)
    look(application.job_file)
    assert commands(application) == {"hello": "two", "other": "x"}


def test_a_file_that_goes_away_while_it_is_read_is_not_replaced_by_one_above(
    application: Application, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(SECOND)
    application.job_file.tick()
    seen = application.job_file._seen
    monkeypatch.setattr(job_file, "file_status", lambda _path: seen)
    file.unlink()
    application.job_file.tick()
    assert commands_stored(application) == ["hello"]


def commands_stored(application: Application) -> list[str]:
    return sorted({str(entry.object_id) for entry in application.audit.find(limit=50)})


def test_a_database_that_does_not_answer_is_asked_again(
    application: Application, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def away() -> None:
        raise Unreachable("the database is away", code="database")

    file.write_text(SECOND)
    application.job_file.tick()
    with monkeypatch.context() as patch:
        patch.setattr(application.jobs, "apply", away)
        with pytest.raises(Unreachable):
            application.job_file.tick()
    application.job_file.tick()
    assert commands(application) == {"hello": "two", "other": "x"}


def test_what_is_read_at_the_start_only_is_named(
    application: Application, file: Path, caplog: pytest.LogCaptureFixture
) -> None:
    file.write_text(f"{FIRST}log_archive: elsewhere\nbooks: {{daily_limit: 7}}\n")
    look(application.job_file)
    assert "keys=log_archive, books" in caplog.text
    assert "Restart this process" in caplog.text
