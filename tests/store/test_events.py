"""Events: kept once per key, looked at in order, marked with the runs they start."""

from datetime import datetime

import pytest
from sqlalchemy import insert, text

from support.factories import take_lead
from support.moving_clock import MovingClock
from support.query_plans import Sent, last_sent, ways_to
from support.threads import at_once
from tsuzuki.model.errors import UsageError
from tsuzuki.store import events
from tsuzuki.store.events import Event
from tsuzuki.store.schema.tables import events as events_table
from tsuzuki.store.sql.database import Database


def emit(database: Database, event_type: str = "order.paid", **said: object) -> tuple[Event, bool]:
    with database.write() as connection:
        return events.emit(
            connection,
            event_type=event_type,
            payload=said.get("payload", {}),
            dedupe_key=said.get("dedupe_key"),  # type: ignore[arg-type]
        )


def test_an_event_is_stored_as_it_was_emitted(database: Database, clock: MovingClock) -> None:
    payload = {"id": 7, "lines": [1, None, {"x": "続き"}]}
    event, is_new = emit(database, payload=payload, dedupe_key="order-7")
    assert is_new
    assert event == Event(
        id=event.id,
        event_type="order.paid",
        payload=payload,
        dedupe_key="order-7",
        created_at=clock.now(),
        processed_at=None,
    )
    with database.read() as connection:
        assert events.find(connection) == [event]
        assert events.payloads(connection, [event.id, 4711]) == {event.id: payload}


def test_a_payload_may_be_any_json_value(database: Database) -> None:
    for payload in ([], [1, 2], "text", 0, False, {}):
        event, _ = emit(database, payload=payload)
        assert event.payload == payload


def test_a_payload_that_json_cannot_hold_is_refused(database: Database) -> None:
    with pytest.raises(UsageError, match="JSON"):
        emit(database, payload={"x": object()})


def test_the_same_key_again_answers_with_the_first_event(
    database: Database, clock: MovingClock
) -> None:
    first, _ = emit(database, payload={"n": 1}, dedupe_key="a")
    clock.advance(60)
    again, is_new = emit(database, payload={"n": 2}, dedupe_key="a")
    assert not is_new
    assert again == first


def test_a_key_counts_among_the_events_of_its_type(database: Database) -> None:
    created, _ = emit(database, "order.created", dedupe_key="order-7")
    paid, is_new = emit(database, "order.paid", dedupe_key="order-7")
    assert is_new
    assert (paid.event_type, paid.id != created.id) == ("order.paid", True)
    assert emit(database, "order.created", dedupe_key="order-7") == (created, False)
    assert emit(database, "order.paid", dedupe_key="order-7") == (paid, False)


def test_the_same_key_again_tells_whether_it_was_processed(database: Database) -> None:
    term = take_lead(database)
    first, _ = emit(database, dedupe_key="a")
    with database.write() as connection:
        events.mark_processed(connection, term=term, event_ids=[first.id])
    again, is_new = emit(database, dedupe_key="a")
    assert (again.id, is_new) == (first.id, False)
    assert again.processed_at is not None


def test_without_a_key_every_event_is_another(database: Database) -> None:
    emitted = [emit(database) for _ in range(3)]
    assert all(is_new for _, is_new in emitted)
    assert len({event.id for event, _ in emitted}) == 3


def test_of_ten_who_emit_one_key_at_once_one_makes_the_event(database: Database) -> None:
    answers = at_once(10, lambda n: emit(database, payload={"n": n}, dedupe_key="a"))
    assert sum(is_new for _, is_new in answers) == 1
    assert len({event.id for event, _ in answers}) == 1
    assert len({repr(event.payload) for event, _ in answers}) == 1
    with database.read() as connection:
        assert len(events.find(connection)) == 1


def test_what_waits_is_looked_at_in_the_order_it_came(
    database: Database, clock: MovingClock
) -> None:
    ids = []
    for _ in range(5):
        ids.append(emit(database)[0].id)
        ids.append(emit(database)[0].id)
        clock.advance(1)
    with database.read() as connection:
        assert [event.id for event in events.unprocessed(connection, limit=100)] == ids
        assert [event.id for event in events.unprocessed(connection, limit=3)] == ids[:3]


def test_an_event_is_marked_once(database: Database, clock: MovingClock) -> None:
    term = take_lead(database)
    a, b = emit(database)[0], emit(database)[0]
    with database.write() as connection:
        assert events.mark_processed(connection, term=term, event_ids=[a.id]) == {a.id}
    clock.advance(5)
    with database.write() as connection:
        both = [a.id, b.id, 4711]
        assert events.mark_processed(connection, term=term, event_ids=both) == {b.id}
        assert events.mark_processed(connection, term=term, event_ids=[]) == frozenset()
    with database.read() as connection:
        assert events.unprocessed(connection, limit=10) == []
        newest_first = events.find(connection)
    assert [event.id for event in newest_first] == [b.id, a.id]
    assert newest_first[0].processed_at == clock.now()
    assert newest_first[1].processed_at != clock.now()


def test_events_are_listed_newest_first_by_pages(database: Database) -> None:
    ids = [emit(database, "a" if n % 2 else "b")[0].id for n in range(6)]
    with database.read() as connection:
        first_page = [event.id for event in events.find(connection, limit=4)]
        assert first_page == ids[:1:-1]
        rest = events.find(connection, before_id=first_page[-1])
        assert [event.id for event in rest] == ids[1::-1]
        assert {event.event_type for event in events.find(connection, event_type="a")} == {"a"}


MANY = 5_000
UNPROCESSED = (
    "SELECT id FROM tsuzuki_events WHERE processed_at IS NULL ORDER BY created_at LIMIT 10"
)
BY_KEY = "SELECT id FROM tsuzuki_events WHERE dedupe_key = 'key 7'"


def test_queries_in_the_words_of_the_design_use_the_indexes_of_events(database: Database) -> None:
    moment = "2025-01-01T00:00:00.000000Z"
    rows = [
        {
            "event_type": "order.paid",
            "payload": {},
            "dedupe_key": f"key {number}",
            "created_at": datetime.fromisoformat(moment),
            "processed_at": None if number > MANY - 10 else datetime.fromisoformat(moment),
        }
        for number in range(MANY)
    ]
    with database.write() as connection:
        connection.execute(insert(events_table), rows)
        connection.execute(text("ANALYZE"))
        with last_sent(connection) as sent:
            assert len(events.unprocessed(connection, limit=5)) == 5
        for query in (sent[-1], Sent(UNPROCESSED, ())):
            (way,) = ways_to(connection, "tsuzuki_events", query)
            assert "tsuzuki_ix_events_processed_at_created_at" in way
        (way,) = ways_to(connection, "tsuzuki_events", Sent(BY_KEY, ()))
        of_keys = (
            "(dedupe_key=?)" if database.is_sqlite else "tsuzuki_uq_events_dedupe_key_event_type"
        )
        assert of_keys in way
