"""The URL of a database: several hosts, as libpq writes them."""

import pytest

from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.store.sql.database import open_database
from tsuzuki.store.sql.database_url import as_libpq, hosts_of, parse_url

SEVERAL = "postgresql+psycopg://ada:se%2Ccret@first:5432,second:5433/work?sslmode=require"


def test_several_hosts_are_given_to_the_driver_in_order() -> None:
    url = parse_url(SEVERAL)
    assert hosts_of(url) == ("first:5432", "second:5433")
    assert (url.username, url.password, url.database) == ("ada", "se,cret", "work")
    database = open_database(SEVERAL, clock=SystemClock())
    _, given = database.engine.dialect.create_connect_args(database.engine.url)
    database.close()
    assert (given["host"], given["port"]) == ("first,second", "5432,5433")


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (SEVERAL, "postgresql://ada@first:5432,second:5433/work?sslmode=require"),
        ("postgresql://first,second/work", "postgresql://first,second/work"),
        ("postgresql://ada:secret@one:1/work", "postgresql://ada@one:1/work"),
        ("postgresql://ada@/work?host=/run/pg", "postgresql://ada@/work?host=%2Frun%2Fpg"),
    ],
)
def test_programs_of_postgresql_are_given_the_hosts_and_no_password(text: str, plain: str) -> None:
    assert as_libpq(parse_url(text)) == plain


def test_a_url_that_cannot_be_read_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        parse_url("postgresql://host:port,other:5432/name")
    with pytest.raises(ConfigurationError):
        parse_url("postgresql://host:port/name")
