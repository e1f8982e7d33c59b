"""Saying that something happened: once per key, in the caller's transaction if it has one."""

from typing import Any

import pytest

from support.factories import add_job, spec
from support.moving_clock import NOON, MovingClock
from support.threads import at_once
from support.unreliable_database import UnreliableDatabase
from tsuzuki.model.errors import Conflict, Unreachable, UsageError
from tsuzuki.model.idempotency_key import KEY_LENGTH_MAX
from tsuzuki.services.events import Events
from tsuzuki.store import audit
from tsuzuki.store.sql.database import Database


@pytest.fixture
def event_service(database: Database) -> Events:
    return Events(database=database)


def test_an_event_is_stored_as_it_was_said(event_service: Events) -> None:
    event, is_new = event_service.emit("pushed", {"branch": "main", "n": [1, None]}, dedupe_key="d")
    assert is_new
    assert (event.event_type, event.dedupe_key) == ("pushed", "d")
    assert event.payload == {"branch": "main", "n": [1, None]}
    assert (event.created_at, event.processed_at) == (NOON, None)
    assert event_service.find() == [event]


def test_the_listeners_of_a_type_are_the_enabled_jobs_that_subscribe_to_it(
    database: Database, event_service: Events
) -> None:
    add_job(database, spec("on", on_event="pushed"))
    add_job(database, spec("off", on_event="pushed", enabled=False))
    add_job(database, spec("other", on_event="pulled"))
    assert event_service.listeners("pushed") == ["on"]


def test_an_event_without_a_payload_carries_an_empty_one(event_service: Events) -> None:
    assert event_service.emit("pushed")[0].payload == {}


def test_a_payload_is_any_json(event_service: Events) -> None:
    payloads: list[Any] = ["text", 3, False, [], {}]
    for payload in payloads:
        assert event_service.emit("pushed", payload)[0].payload == payload
        assert event_service.find()[0].payload == payload


def test_the_same_event_again_is_the_first_one(event_service: Events) -> None:
    first, _ = event_service.emit("pushed", {"n": [1], "of": {10: 0, 9: 0}}, dedupe_key="d")
    again = event_service.emit("pushed", {"of": {9: 0, 10: 0}, "n": (1,)}, dedupe_key="d")
    assert again == (first, False)
    assert len(event_service.find()) == 1


def test_a_key_is_used_once_for_each_type(event_service: Events) -> None:
    event_service.emit("order.created", {"n": 1}, dedupe_key="order-7")
    paid, is_new = event_service.emit("order.paid", {"n": 2}, dedupe_key="order-7")
    assert (paid.event_type, paid.payload, is_new) == ("order.paid", {"n": 2}, True)


@pytest.mark.parametrize("length", [0, KEY_LENGTH_MAX + 1, 6000])
def test_an_empty_or_too_long_key_is_refused(event_service: Events, length: int) -> None:
    event_service.emit("pushed", dedupe_key="\N{GRINNING FACE}" * KEY_LENGTH_MAX)
    with pytest.raises(UsageError) as refused:
        event_service.emit("pushed", dedupe_key="k" * length)
    assert refused.value.specific_code == "key_length"


@pytest.mark.parametrize("other", [{"n": 2}, {"n": True}, {"n": 1.0}, [1], None])
def test_a_used_key_with_another_payload_is_refused(event_service: Events, other: Any) -> None:
    first, _ = event_service.emit("pushed", {"n": 1}, dedupe_key="d")
    with pytest.raises(Conflict) as refused:
        event_service.emit("pushed", other, dedupe_key="d")
    assert refused.value.specific_code == "event_key_used"
    assert event_service.find() == [first]


def test_without_a_key_every_event_is_a_new_one(event_service: Events) -> None:
    assert [event_service.emit("pushed")[1] for _ in range(3)] == [True] * 3
    assert len(event_service.find()) == 3


def test_after_a_lost_reply_the_event_is_emitted_again_with_its_key(database: Database) -> None:
    unreliable = UnreliableDatabase(database)
    event_service = Events(database=unreliable)
    unreliable.replies_to_lose = 1
    with pytest.raises(Unreachable):
        event_service.emit("pushed", dedupe_key="d")
    assert not event_service.emit("pushed", dedupe_key="d")[1]
    assert len(event_service.find()) == 1


def test_of_ten_who_say_the_same_at_once_one_is_first(event_service: Events) -> None:
    answers = at_once(10, lambda _: event_service.emit("pushed", {"n": 1}, dedupe_key="d"))
    assert sum(is_new for _, is_new in answers) == 1
    assert len({event.id for event, _ in answers}) == 1


def test_in_the_callers_transaction_it_happened_only_if_that_is_committed(
    database: Database, event_service: Events
) -> None:
    def act(*, fails: bool) -> None:
        with database.write() as connection:
            event_service.emit("pushed", dedupe_key="d", connection=connection)
            if fails:
                raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        act(fails=True)
    assert event_service.find() == []
    act(fails=False)
    assert len(event_service.find()) == 1


def test_what_cannot_be_kept_is_refused_and_nothing_is_stored(event_service: Events) -> None:
    bad: list[tuple[str, Any, str | None]] = [
        ("", {}, None),
        ("x" * 201, {}, None),
        ("pushed", {"when": NOON}, None),
        ("pushed", {1, 2}, None),
        ("pushed", float("nan"), None),
        ("nul\x00", {}, None),
        ("pushed", {}, "nul\x00"),
    ]
    for event_type, payload, key in bad:
        with pytest.raises(UsageError):
            event_service.emit(event_type, payload, dedupe_key=key)
    assert event_service.find() == []


def test_events_are_found_newest_first_by_type_and_page_by_page(
    event_service: Events, clock: MovingClock
) -> None:
    for number in range(6):
        event_service.emit("even" if number % 2 == 0 else "odd", {"n": number})
        clock.advance(1)
    assert [event.payload["n"] for event in event_service.find(limit=3)] == [5, 4, 3]
    last = event_service.find(limit=3)[-1]
    assert [event.payload["n"] for event in event_service.find(before_id=last.id)] == [2, 1, 0]
    assert [event.payload["n"] for event in event_service.find(event_type="even")] == [4, 2, 0]
    assert event_service.find(event_type="never") == []


def test_an_event_is_audited_once_under_the_name_of_who_emitted_it(
    database: Database, event_service: Events
) -> None:
    event_service.emit("pushed")
    for actor in ("token:ci", "token:other"):
        event, _ = event_service.emit("pushed", dedupe_key="d", actor=actor)
    with database.read() as connection:
        (entry,) = audit.find(connection)
    assert (entry.actor, entry.action) == ("token:ci", "event.emit")
    assert (entry.object_type, entry.object_id) == ("event", str(event.id))
    assert entry.after == {"event_type": "pushed"}
