"""URLs: passwords stay hidden, databases we do not speak are refused."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.config.environment.urls import (
    check_redis_url,
    holds_password,
    normalise_database_url,
    redact_url,
)
from tsuzuki.config.environment.variables import ConfiguredValue
from tsuzuki.model.errors import ConfigurationError

WORKSPACE = Path("/work/space")


def named(url: str) -> ConfiguredValue:
    return ConfiguredValue(text=url, name="THE_NAME")


@pytest.mark.parametrize(
    ("url", "redacted"),
    [
        ("postgresql://me:secret@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:se/cr?et#@host/db", "postgresql://me:***@host/db"),
        ("postgresql://me:p@ss@host/db", "postgresql://me:***@host/db"),
        ("redis://:secret@host:6379/0", "redis://:***@host:6379/0"),
        (
            "postgresql://host/db?user=me&password=secret",
            "postgresql://host/db?user=me&password=***",
        ),
        ("url: 's3://bucket?token=secret'", "url: 's3://bucket?token=***'"),
        ("postgresql://me@host:5432/db", "postgresql://me@host:5432/db"),
        ("redis://host:6379/0?name=a@b", "redis://host:6379/0?name=a@b"),
        ("sqlite:////var/lib/tsuzuki.db", "sqlite:////var/lib/tsuzuki.db"),
        ("no url at all", "no url at all"),
    ],
)
def test_passwords_are_hidden_and_nothing_else(url: str, redacted: str) -> None:
    assert redact_url(url) == redacted
    assert holds_password(url) == (url != redacted)


@given(st.text(st.characters(codec="ascii", exclude_categories=["C", "Z"]), min_size=3))
def test_no_password_shows_through(password: str) -> None:
    redacted = redact_url(f"postgresql://me:{password}@host/db")
    assert redacted == "postgresql://me:***@host/db" or password[0].isdigit()


@pytest.mark.parametrize(
    ("url", "result"),
    [
        ("sqlite:///tsuzuki.db", "sqlite:////work/space/tsuzuki.db"),
        ("sqlite:///data/x.db?timeout=5", "sqlite:////work/space/data/x.db?timeout=5"),
        ("sqlite:////var/x.db", "sqlite:////var/x.db"),
        ("postgresql://me@host/db", "postgresql+psycopg://me@host/db"),
        ("postgres://me@host/db", "postgresql+psycopg://me@host/db"),
        ("postgresql+psycopg://me@host/db", "postgresql+psycopg://me@host/db"),
    ],
)
def test_a_database_url_comes_out_as_the_store_wants_it(url: str, result: str) -> None:
    assert normalise_database_url(named(url), workspace=WORKSPACE) == result


@pytest.mark.parametrize(
    "url",
    ["mysql://me:secret@host/db", "tsuzuki.db", "", "sqlite://", "sqlite:///", "sqlite:///:memory:",
     "sqlite://tsuzuki.db", "postgresql+asyncpg://host/db", "postgresql:host"],
)  # fmt: skip
def test_any_other_database_url_is_refused_without_telling_its_password(url: str) -> None:
    with pytest.raises(ConfigurationError, match=r"^THE_NAME must") as caught:
        normalise_database_url(named(url), workspace=WORKSPACE)
    assert caught.value.hint
    assert "secret" not in str(caught.value)


def test_only_redis_is_taken_for_redis() -> None:
    for url in ("redis://host", "rediss://host:6380/1", "unix:///run/redis.sock"):
        assert check_redis_url(named(url)) == url
    with pytest.raises(ConfigurationError, match="must be the URL of a Redis"):
        check_redis_url(named("http://host"))
