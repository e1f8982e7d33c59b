"""Times and JSON mean the same on both databases."""

from datetime import UTC, datetime, timedelta, timezone
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy.exc import StatementError

from support.factories import add_job, create_run, read_run
from tsuzuki.store.sql.database import Database
from tsuzuki.store.sql.stored_values import to_text

moments = st.datetimes(timezones=st.timezones() | st.just(UTC)).filter(
    lambda moment: 2 < moment.year < 9998
)


@given(moments, moments)
def test_the_order_of_the_texts_is_the_order_of_the_times(one: datetime, two: datetime) -> None:
    one, two = one.astimezone(UTC), two.astimezone(UTC)
    assert (to_text(one) < to_text(two)) == (one < two)
    assert len(to_text(one)) == len("2026-03-01T12:00:00.000000Z")
    assert datetime.fromisoformat(to_text(one)) == one


def test_a_time_without_a_zone_is_refused(database: Database) -> None:
    job_id = add_job(database)
    naive = datetime(2026, 3, 1, 12, 0)  # noqa: DTZ001 -- the mistake that is looked for
    with pytest.raises(ValueError, match="without a zone"):
        to_text(naive)
    with pytest.raises((ValueError, StatementError), match="without a zone"):
        create_run(database, job_id, scheduled_for=naive)


def test_a_time_of_any_zone_comes_back_in_utc(database: Database) -> None:
    job_id = add_job(database)
    for moment in (
        datetime(2026, 7, 1, 12, 0, 0, 123_456, tzinfo=ZoneInfo("Asia/Tokyo")),
        datetime(2026, 10, 25, 2, 30, fold=1, tzinfo=ZoneInfo("Europe/Berlin")),
        datetime(1900, 1, 1, tzinfo=timezone(timedelta(hours=-11, minutes=-30))),
        datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=UTC),
    ):
        found = read_run(database, create_run(database, job_id, scheduled_for=moment).id)
        assert found.scheduled_for == moment.astimezone(UTC)
        assert found.scheduled_for.tzinfo is UTC
