"""Parked models: not asked until then, save for one request an hour."""

from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import insert

from support.databases import opened
from support.threads import at_once
from tsuzuki.collectors.feeds.queries import models
from tsuzuki.collectors.feeds.tables import item_steps, items
from tsuzuki.store.sql.database import Database

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
HOUR = timedelta(hours=1)
MIDNIGHT = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


def park(database: Database, until: datetime, probe_at: datetime, why: str = "day") -> None:
    with database.write() as connection:
        models.park(connection, "default", until=until, probe_at=probe_at, why=why)


def parked(database: Database, now: datetime) -> list[models.ParkedModel]:
    with database.read() as connection:
        return list(models.parked(connection, now=now).values())


def probe(database: Database, now: datetime) -> bool:
    with database.write() as connection:
        return models.take_probe(connection, "default", now=now, next_probe_at=now + HOUR)


def test_a_model_is_parked_until_then(feeds_database: Database) -> None:
    assert parked(feeds_database, NOON) == []
    park(feeds_database, MIDNIGHT, NOON + HOUR)
    (found,) = parked(feeds_database, MIDNIGHT - timedelta(seconds=1))
    assert (found.model, found.parked_until, found.why) == ("default", MIDNIGHT, "day")
    assert parked(feeds_database, MIDNIGHT) == []


def test_an_answer_ends_it(feeds_database: Database) -> None:
    park(feeds_database, MIDNIGHT, NOON + HOUR)
    with feeds_database.write() as connection:
        models.unpark(connection, "default")
    assert parked(feeds_database, NOON) == []


def test_a_limit_of_a_minute_does_not_shorten_that_of_the_day_but_is_probed_after(
    feeds_database: Database,
) -> None:
    soon = NOON + timedelta(seconds=30)
    park(feeds_database, MIDNIGHT, NOON + HOUR)
    park(feeds_database, soon, soon, why="minute")
    (found,) = parked(feeds_database, NOON)
    assert (found.parked_until, found.probe_at, found.why) == (MIDNIGHT, soon, "day")


def test_a_limit_of_the_day_lengthens_that_of_a_minute(feeds_database: Database) -> None:
    soon = NOON + timedelta(seconds=30)
    park(feeds_database, soon, soon, why="minute")
    park(feeds_database, MIDNIGHT, NOON + HOUR)
    (found,) = parked(feeds_database, NOON)
    assert (found.parked_until, found.probe_at, found.why) == (MIDNIGHT, NOON + HOUR, "day")


def test_one_probe_an_hour_is_allowed(feeds_database: Database) -> None:
    park(feeds_database, MIDNIGHT, NOON + HOUR)
    assert not probe(feeds_database, NOON + HOUR - timedelta(seconds=1))
    assert probe(feeds_database, NOON + HOUR)
    assert not probe(feeds_database, NOON + HOUR)
    assert not probe(feeds_database, NOON + HOUR + timedelta(minutes=59))
    assert probe(feeds_database, NOON + 2 * HOUR)


def test_of_two_processes_one_gets_the_probe(feeds_database: Database, database_url: str) -> None:
    park(feeds_database, MIDNIGHT, NOON)

    def take(_number: int) -> bool:
        with opened(database_url) as own:
            return probe(own, NOON)

    assert sorted(at_once(4, take)) == [False, False, False, True]


@pytest.mark.parametrize(
    ("state", "answered"), [("done", True), ("failed", False), ("started", False)]
)
def test_a_model_has_answered_if_a_step_was_done_with_it(
    feeds_database: Database, state: str, answered: bool
) -> None:
    about = {"published_at": NOON, "created_at": NOON, "last_checked_at": NOON}
    item = {"id": 1, "url": "u", "title": "t", "status": 0, "retry_count": 0, **about}
    step = {"item_id": 1, "run_id": 1, "step": "screening", "state": state, "model": "default"}
    tokens = {"is_paid": True, "input_tokens": 1, "output_tokens": 1, "started_at": NOON}
    ended = {"ended_at": None if state == "started" else NOON}
    with feeds_database.write() as connection:
        connection.execute(insert(items).values(item))
        connection.execute(insert(item_steps).values({**step, **tokens, **ended}))
    with feeds_database.read() as connection:
        assert models.has_answered(connection, "default") is answered
        assert not models.has_answered(connection, "other")
