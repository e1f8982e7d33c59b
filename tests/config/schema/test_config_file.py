"""The top-level keys of a file, and what its jobs take from them."""

from typing import Any

import pytest

from config.schema.definitions import faults, read
from tsuzuki.config.schema import config_file
from tsuzuki.config.schema.jobs import read_job
from tsuzuki.model.job import JobSpec
from tsuzuki.model.schedule import parse_schedule


def test_a_file_that_says_nothing_has_no_jobs_and_all_defaults() -> None:
    for text in ("", "# nothing\n", "jobs:\n", "jobs: {}\n", "version: 1\n"):
        content = read(text)
        assert content.jobs == ()
        assert content.timezone == "UTC"
        assert content.database_url is None


def test_schedules_without_a_zone_are_in_the_zone_of_the_file() -> None:
    content = read(
        """\
        timezone: Asia/Tokyo
        jobs:
          here: {command: x, schedule: {daily_at: "09:00"}}
          there: {command: x, schedule: {daily_at: "09:00", timezone: Europe/Berlin}}
        """
    )
    here, there = content.jobs
    assert here.schedule == parse_schedule({"daily_at": "09:00", "timezone": "Asia/Tokyo"})
    assert there.schedule == parse_schedule({"daily_at": "09:00", "timezone": "Europe/Berlin"})


def test_jobs_share_what_they_have_in_common_by_anchors() -> None:
    content = read(
        """\
        jobs:
          one: &common
            command: one
            timeout: 5m
            max_retries: 3
          two:
            <<: *common
            command: two
        """
    )
    assert [spec.timeout_seconds for spec in content.jobs] == [300, 300]
    assert [spec.options["argv"] for spec in content.jobs] == [["one"], ["two"]]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("jobs:\n  it:\n", "2:3: job `it` has nothing to run"),
        ("jobs:\n  it: {}\n", "2:3: job `it` has nothing to run"),
        ("jobs:\n  it: echo\n", "2:3: job `it` has nothing to run"),
        ("jobs:\n  it:\n    timeout: 5m\n", "2:3: job `it` has nothing to run"),
        ("jobs:\n  it:\n    comand: x\n", "3:5: unknown key `comand`"),
        ("jobs:\n  it:\n    type: command\n", "2:3: `command` is missing"),
        ("jobs:\n  not this:\n    command: x\n", "2:3: invalid job name 'not this'"),
        ("jobs:\n  - it\n", "2:3: `jobs` must be a mapping of names to jobs, not a list"),
        ("version: 2\n", "1:10: `version` must be 1, the only version, not 2"),
        ("timezone: Asia/Tokio\n", "1:11: unknown time zone 'Asia/Tokio'"),
        ("timezone: 9\n", "1:11: `timezone` must be the name of a time zone, not 9"),
        ("contact: me (at) home\n",
         "1:10: `contact` must be an email address or a web address, not 'me (at) home'"),
        ("job:\n  it: {command: x}\n", "1:1: unknown key `job`"),
        ("database_url: 5\n", "1:15: `database_url` must be a URL, not 5"),
        ("redis_url: ${\n", "1:12: `${` is not a valid variable reference"),
        ("- it\n", "1:1: the file must be a mapping with the keys version, database_url, "
         "database_direct_url, redis_url, timezone, log_archive, contact, jobs, webhooks, web"),
        ("jobs:\n  it:\n    type: books\n", "2:3: `query` is missing"),
        ("jobs:\n  it:\n    type: books\n    query: {}\n", "4:5: `query.text` is missing"),
        ("jobs:\n  it: {type: books, query: {text: a, pages_max: 99}}\n",
         "2:49: `query.pages_max` must be at most 40, not 99"),
        ("jobs:\n  it: {type: books, query: {text: a, page_max: 9}}\n",
         "2:38: unknown key `query.page_max`"),
        ("jobs:\n  it: {type: books, query: {text: a}, language: fr}\n",
         "2:49: `language` must be one of 'en' or 'ja', not 'fr'"),
        ("jobs:\n  it: {type: books, query: {text: a}, section: 5}\n",
         "2:48: `section` must be the name of a section, not 5"),
        ("jobs:\n  it: {type: books, query: {text: a}, limit: many}\n",
         "2:46: `limit` must be a whole number, not 'many'"),
    ],
)  # fmt: skip
def test_a_fault_in_the_shape_of_the_file_is_told_at_its_place(text: str, told: str) -> None:
    assert faults(text) == [f"tsuzuki.yaml:{told}"]


def test_a_job_that_is_written_as_before_is_not_validated_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    validated: list[str] = []

    def counting(name: str, body: object, **options: Any) -> JobSpec | None:
        validated.append(name)
        return read_job(name, body, **options)

    monkeypatch.setattr(config_file, "read_job", counting)
    read("jobs:\n  as-before: {command: x, priority: 1}\n  other: {command: x}\n")
    assert sorted(validated) == ["as-before", "other"]
    changed = read("jobs:\n  other: {command: y}\n  as-before: {priority: 1, command: x}\n")
    assert validated[2:] == ["other"]
    assert [job.name for job in changed.jobs] == ["other", "as-before"]
    told = faults("jobs:\n  as-before: {command: x, priority: true}\n  other: {command: y}\n")
    assert len(told) == 1, "1 and true are not the same"
    zone = read("timezone: Asia/Tokyo\njobs:\n  other: {command: y, schedule: daily at 09:00}\n")
    assert zone.jobs[0].schedule == parse_schedule("daily at 09:00", default_timezone="Asia/Tokyo")
