"""Credentials in URLs: masked wherever they stand, and nothing else is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.model.secrets import MASK, SecretMask, mask_secrets


def test_what_is_nested_too_deep_to_be_shown_is_masked_too() -> None:
    value: object = "end"
    for level in range(600):
        value = [value] if level % 2 else {"a": value}
    shown = json.dumps(SecretMask().value(value))
    assert "end" not in shown
    assert MASK in shown


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("postgresql://u:p@h:5432/d is down", "postgresql://u:***@h:5432/d is down"),
        ("postgresql+psycopg://u:p@ss@h/d", "postgresql+psycopg://u:***@h/d"),
        ("postgres://u:p/w@h/d", "postgres://u:***@h/d"),
        ("postgresql://me:se/cr?et#@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:p@s/s@host/db", "postgresql://me:***@host/db"),
        (
            "redis://:p@h/0 and https://token@git.example/x",
            "redis://:***@h/0 and https://***@git.example/x",
        ),
        ("https://api.example/v1?key=AIza&q=x", "https://api.example/v1?key=***&q=x"),
        ("https://h/?q=x&private_token=t#a", "https://h/?q=x&private_token=***#a"),
        ("postgresql://h/db?user=me&password=p", "postgresql://h/db?user=me&password=***"),
        ("url: 's3://bucket?token=secret'", "url: 's3://bucket?token=***'"),
    ],
)
def test_credentials_are_masked(text: str, masked: str) -> None:
    assert mask_secrets(text) == masked


@pytest.mark.parametrize(
    "text",
    [
        "sqlite:////var/lib/tsuzuki.db",
        "Write sqlite:///tsuzuki.db or postgresql://user@host/database.",
        "redis://host:6379/0?name=a@b",
        "https://social.example/@user",
        "http://localhost:8080/@user",
        "git@example.org:me/it.git and ssh://git@example.org/me/it",
        "write to me@example.org",
        "postgresql://user:@host/database",
        "no url at all",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask_secrets(text) == text


@given(st.text(st.characters(codec="ascii", exclude_categories=["C", "Z"]), min_size=3))
def test_no_password_shows_through(password: str) -> None:
    masked = mask_secrets(f"postgresql://me:{password}@host/db")
    assert masked == "postgresql://me:***@host/db" or password[0].isdigit()


@pytest.mark.parametrize("part", ["://", "://a:b", "https://a@", "?key", "&a.b", "://u:p/"])
def test_a_text_of_megabytes_is_masked_before_the_test_times_out(part: str) -> None:
    assert "hunter2" not in mask_secrets(part * 500_000 + " https://me:hunter2@host/")


@pytest.mark.parametrize(
    "key",
    "password PASSWORD db_password apiKey api-key GITLAB_TOKEN accessToken client.secret Authorization".split(),
)
def test_the_value_of_a_key_that_names_a_secret_is_masked(key: str) -> None:
    assert SecretMask().value({key: "abc", "n": {key: 7}, key * 2: []})[key] == MASK
    assert SecretMask().value({"n": [{key: 7}]}) == {"n": [{key: MASK}]}


@pytest.mark.parametrize(
    "key", "concurrency_key dedupe_key tokens monkey secrets_found keys".split()
)
def test_the_value_of_another_key_is_not(key: str) -> None:
    assert SecretMask().value({key: "abc"}) == {key: "abc"}


def test_nothing_is_told_of_a_secret_that_is_not_there() -> None:
    assert SecretMask().value({"password": None, "token": False}) == {
        "password": None,
        "token": False,
    }


def test_a_known_secret_is_masked_wherever_it_stands() -> None:
    mask = SecretMask(lambda: ["hunter22", "hunter22-longer", "", "abc"])
    assert mask.text("x=hunter22, y=hunter22-longer, abc") == "x=***, y=***, abc"
    assert mask.value({"log": ["a hunter22 b"]}) == {"log": ["a *** b"]}
