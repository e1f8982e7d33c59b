"""URLs: passwords stay hidden, databases we do not speak are refused."""

from pathlib import Path

import pytest

from tsuzuki.config.environment.urls import (
    check_direct_url,
    check_redis_url,
    holds_password,
    normalise_database_url,
)
from tsuzuki.config.environment.variables import ConfiguredValue
from tsuzuki.model.errors import ConfigurationError

WORKSPACE = Path("/work/space")


def named(url: str) -> ConfiguredValue:
    return ConfiguredValue(text=url, name="THE_NAME")


@pytest.mark.parametrize(
    ("url", "is_held"),
    [
        ("postgresql://me:secret@host/db", True),
        ("postgresql://host/db?user=me&password=secret", True),
        ("postgresql://me@host:5432/db", False),
        ("no url at all", False),
    ],
)
def test_a_password_in_a_url_is_found(url: str, is_held: bool) -> None:
    assert holds_password(url) is is_held


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
    with pytest.raises(ConfigurationError, match="must be a Redis URL"):
        check_redis_url(named("http://host"))


def test_a_way_past_a_pooler_leads_to_postgresql() -> None:
    assert check_direct_url(named("postgres://host/db")) == "postgresql+psycopg://host/db"
    with pytest.raises(ConfigurationError, match="must be the URL of a PostgreSQL database"):
        check_direct_url(named("sqlite:///tsuzuki.db"))
