"""What a person may write for a books job, and what is said about the rest."""

from pathlib import Path
from typing import Any

import pytest

from tsuzuki.collectors.books.options import KIND, BooksOptions, BooksSection
from tsuzuki.config import Configuration, InvalidFile, load_configuration, parse_job
from tsuzuki.model.errors import ConfigurationError

KINDS = {"books": KIND}


def refusal(**keys: Any) -> str:
    with pytest.raises(InvalidFile) as caught:
        parse_job("novelties", {"type": "books", **keys}, kinds=KINDS)
    return " / ".join(problem.message for problem in caught.value.problems)


def load(folder: Path, content: str = "", **environ: str) -> Configuration:
    (folder / "tsuzuki.yaml").write_text(content)
    return load_configuration(environ=environ, cwd=folder, kinds=KINDS)


def section(folder: Path, content: str = "", **environ: str) -> BooksSection:
    found = load(folder, content, **environ).section("books")
    assert isinstance(found, BooksSection)
    return found


def test_a_whole_job_is_understood() -> None:
    spec = parse_job(
        "novelties",
        {
            "type": "books",
            "queries": ["subject:astronomy", "天文"],
            "print_type": "books",
            "lang_restrict": "ja",
            "order_by": "newest",
            "max_per_run": 80,
            "mail_limit": 5,
            "fallback_limit": 2,
            "recheck_exhausted_after": "30d",
            "schedule": "daily at 07:00",
        },
        kinds=KINDS,
    )
    options = BooksOptions.model_validate(spec.options)
    assert options.recheck_exhausted_after == 30 * 86_400
    assert options.search.list_options == {
        "printType": "books",
        "langRestrict": "ja",
        "orderBy": "newest",
    }
    assert options.search.text == "subject:astronomy OR 天文"


@pytest.mark.parametrize(
    ("keys", "words"),
    [
        ({}, "`queries` is missing"),
        ({"queries": []}, "`queries` must be a list of 1 to 100 queries, not an empty list"),
        ({"queries": "python"}, "`queries` must be a list of 1 to 100 queries"),
        ({"queries": ["a", " \ufeff\u3000"]}, "empty query"),
        ({"queries": [1]}, "`queries[0]` must be text"),
        (
            {"queries": ["x" * 1_000_000]},
            "have 1000000 characters together; a search can have 2000",
        ),
        ({"queries": ["x" * 2_001]}, "have 2001 characters together; a search can have 2000"),
        ({"queries": ["x"] * 101}, "a list of 1 to 100 queries"),
        ({"queries": ["a"], "max_per_run": 0}, "`max_per_run` must be a whole number from 1"),
        ({"queries": ["a"], "max_per_run": "many"}, "`max_per_run` must be a whole number"),
        ({"queries": ["a"], "max_per_run": True}, "`max_per_run` must be a whole number"),
        ({"queries": ["a"], "mail_limit": -1}, "`mail_limit` must be a whole number from 0"),
        (
            {"queries": ["a"], "print_type": "comics"},
            "`print_type` must be all, books or magazines",
        ),
        ({"queries": ["a"], "order_by": "random"}, "`order_by` must be relevance or newest"),
        (
            {"queries": ["a"], "lang_restrict": "en&key=1"},
            "`lang_restrict` must be a language code",
        ),
        ({"queries": ["a"], "recheck_exhausted_after": 0}, "must be a duration above 0"),
        ({"queries": ["a"], "max_per_rum": 1}, "unknown key `max_per_rum`"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_a_mistake_in_a_job_is_told_in_our_words(keys: dict[str, Any], words: str) -> None:
    assert words in refusal(**keys)


def test_the_place_of_a_mistake_is_told(tmp_path: Path) -> None:
    text = "jobs:\n  n:\n    type: books\n    queries: [a]\n    max_per_run: 0\n"
    with pytest.raises(InvalidFile) as caught:
        load(tmp_path, text)
    (problem,) = caught.value.problems
    assert problem.place is not None
    assert (problem.place.line, problem.place.column) == (5, 18)


def test_the_section_has_defaults_and_is_read_from_file_and_environment(tmp_path: Path) -> None:
    plain = section(tmp_path)
    assert (plain.daily_limit, plain.quota_zone) == (100, "America/Los_Angeles")
    found = section(
        tmp_path,
        "books:\n  api_key: ${KEY}\n  mail:\n    to: [a@example.org]\n    encryption: implicit\n",
        KEY="k",
        TSUZUKI_BOOKS_MAIL_PORT="465",
        TSUZUKI_BOOKS_MAIL_FROM="me@example.org",
        TSUZUKI_BOOKS_DAILY_LIMIT="7",
    )
    assert (found.required_key(), found.daily_limit, found.mail.port) == ("k", 7, 465)
    assert (found.mail.sender, found.mail.to) == ("me@example.org", ["a@example.org"])


def test_the_daily_limit_has_the_variable_of_the_design(tmp_path: Path) -> None:
    assert section(tmp_path, DAILY_BOOKS_API_LIMIT="12").daily_limit == 12
    with pytest.raises(ConfigurationError, match="whole number from 0"):
        section(tmp_path, DAILY_BOOKS_API_LIMIT="lots")


def test_secrets_are_not_shown(tmp_path: Path) -> None:
    found = section(
        tmp_path, TSUZUKI_BOOKS_API_KEY="s3cret", TSUZUKI_BOOKS_MAIL_PASSWORD="passw0rd"
    )
    assert "s3cret" not in repr(found)
    assert "passw0rd" not in repr(found)


@pytest.mark.parametrize("key", [None, "", "  "])
def test_a_missing_key_is_told_with_what_to_do(key: str | None) -> None:
    with pytest.raises(ConfigurationError, match="no API key for Google Books") as caught:
        BooksSection(api_key=key).required_key()  # type: ignore[arg-type]
    assert "TSUZUKI_BOOKS_API_KEY" in str(caught.value.hint)
