"""Settings: only safe sets are stored, every change is audited, and applies at once."""

from contextlib import suppress
from dataclasses import asdict, fields

import pytest
from sqlalchemy import insert

from support import raw_statements
from support.dialects import only_on_postgresql
from support.moving_clock import MovingClock
from support.threads import at_once, in_background
from support.waiting import wait_until_blocked
from tsuzuki.model.errors import NotFound, UsageError
from tsuzuki.model.settings import SETTINGS, EngineSettings
from tsuzuki.store import audit, settings
from tsuzuki.store.schema.tables import settings as settings_table
from tsuzuki.store.settings import StoredSetting
from tsuzuki.store.sql.database import Database


def put(database: Database, key: str, value: object) -> int | float:
    with database.write() as connection:
        return settings.put(connection, key=key, value=value, actor="ada")


def reset(database: Database, key: str) -> int | float:
    with database.write() as connection:
        return settings.reset(connection, key=key, actor="ada")


def load(database: Database) -> EngineSettings:
    with database.read() as connection:
        return settings.load(connection)


def find(database: Database) -> list[StoredSetting]:
    with database.read() as connection:
        return settings.find(connection)


def told(database: Database) -> list[tuple[str, object, object]]:
    with database.read() as connection:
        entries = audit.find(connection, object_type="setting")
    return [(entry.object_id, entry.before, entry.after) for entry in entries]


def test_at_first_everything_is_at_its_default(database: Database) -> None:
    assert load(database) == EngineSettings()
    assert find(database) == []


def test_every_setting_keeps_its_kind_and_its_bounds(database: Database) -> None:
    alone = EngineSettings()
    for setting in SETTINGS.values():
        for edge in (setting.minimum, setting.maximum):
            try:
                alone.with_values({setting.key: edge})
            except UsageError:
                continue  # this edge is only reachable together with other settings
            assert put(database, setting.key, edge) == edge
            stored = getattr(load(database), setting.key)
            assert (stored, type(stored)) == (edge, setting.kind)
        reset(database, setting.key)
    assert load(database) == alone


def test_a_value_may_be_said_as_text(database: Database, clock: MovingClock) -> None:
    assert put(database, "lease_seconds", "20") == 20.0
    assert put(database, "max_orphans", "7") == 7
    assert find(database) == [
        StoredSetting(key="lease_seconds", value=20.0, updated_at=clock.now(), updated_by="ada"),
        StoredSetting(key="max_orphans", value=7, updated_at=clock.now(), updated_by="ada"),
    ]


def test_a_value_of_the_wrong_kind_or_out_of_bounds_is_refused(database: Database) -> None:
    never = ["many", "", None, True, [1], float("nan"), float("inf"), "1e999"]
    for setting in SETTINGS.values():
        wrong = [*never, setting.minimum - 1, setting.maximum + 1]
        wrong += [1.5, "1.5"] if setting.kind is int else []
        for value in wrong:
            with pytest.raises(UsageError) as refused:
                put(database, setting.key, value)
            assert refused.value.specific_code == "setting_value"
            assert setting.key in refused.value.message
    assert find(database) == []


UNSAFE_ALONE = [
    ("lease_seconds", 5.0),
    ("lease_renew_interval_seconds", 8.0),
    ("lease_margin_seconds", 7.0),
    ("worker_ttl_seconds", 3.9),
    ("heartbeat_interval_seconds", 3.1),
    ("continuation_retry_count", 14),
    ("continuation_retry_interval_seconds", 1.5),
    ("worker_grace_seconds", 0.8),
]


def test_a_value_that_breaks_a_rule_between_settings_is_refused(database: Database) -> None:
    for key, value in UNSAFE_ALONE:
        with pytest.raises(UsageError) as refused:
            put(database, key, value)
        assert refused.value.specific_code == "setting_conflict"
        assert key in refused.value.message
    assert find(database) == []
    assert told(database) == []


def test_safe_steps_reach_a_set_that_no_single_step_could(database: Database) -> None:
    put(database, "lease_renew_interval_seconds", 1.0)
    put(database, "lease_margin_seconds", 1.0)
    put(database, "lease_seconds", 5.0)
    with pytest.raises(UsageError, match="lease_seconds"):
        reset(database, "lease_renew_interval_seconds") and reset(database, "lease_margin_seconds")
    assert load(database).lease_seconds == 5.0


def test_a_default_that_would_break_a_rule_is_not_gone_back_to(database: Database) -> None:
    put(database, "lease_seconds", 60.0)
    put(database, "lease_renew_interval_seconds", 20.0)
    with pytest.raises(UsageError) as refused:
        reset(database, "lease_seconds")
    assert refused.value.specific_code == "setting_conflict"
    assert load(database).lease_seconds == 60.0


def test_an_unknown_name_is_refused_and_the_nearest_is_suggested(database: Database) -> None:
    for typed, hint in [
        ("lease_second", 'Did you mean "lease_seconds"?'),
        ("MAX_ORPHANS", 'Did you mean "max_orphans"?'),
        ("zzz", "See: tsuzuki settings ls"),
    ]:
        for change in (lambda key: put(database, key, 5), lambda key: reset(database, key)):
            with pytest.raises(NotFound) as refused:
                change(typed)
            assert (refused.value.hint or "").startswith(hint)
    assert find(database) == []


def test_every_change_is_audited_and_nothing_else(database: Database, clock: MovingClock) -> None:
    put(database, "max_orphans", 7)
    put(database, "max_orphans", 9)
    reset(database, "max_orphans")
    reset(database, "max_orphans")
    with pytest.raises(UsageError):
        put(database, "max_orphans", -1)
    assert told(database) == [
        ("max_orphans", 9, 5),
        ("max_orphans", 7, 9),
        ("max_orphans", 5, 7),
    ]
    with database.read() as connection:
        (entry, *_) = audit.find(connection, object_type="setting")
    assert (entry.actor, entry.action, entry.at) == ("ada", "setting.set", clock.now())


def test_a_stored_name_of_another_version_is_left_alone(database: Database) -> None:
    from_tomorrow = {
        "key": "flux",
        "value": 88,
        "updated_at": raw_statements.MOMENT,
        "updated_by": "x",
    }
    raw_statements.send(database, insert(settings_table).values(from_tomorrow))
    assert load(database) == EngineSettings()
    put(database, "max_orphans", 7)
    assert load(database) == EngineSettings().with_values({"max_orphans": 7})
    assert "flux" in {row.key for row in find(database)}


def test_settings_are_read_while_one_is_being_changed(database: Database) -> None:
    with database.write() as connection:
        settings.put(connection, key="max_orphans", value=7, actor="ada")
        assert in_background(lambda: load(database)).result(30).max_orphans == 5
    assert load(database).max_orphans == 7


@only_on_postgresql
def test_two_changes_that_are_unsafe_together_do_not_both_take(database: Database) -> None:
    """Each of them is safe with the set as it was."""
    with database.write() as connection:
        settings.put(connection, key="lease_renew_interval_seconds", value=6.0, actor="ada")
        second = in_background(lambda: put(database, "lease_margin_seconds", 6.0))
        wait_until_blocked(database)
    with pytest.raises(UsageError):
        second.result(30)
    assert load(database).lease_margin_seconds == 2.0


def test_ten_changes_at_once_leave_a_set_that_can_be_loaded(database: Database) -> None:
    def change(number: int) -> None:
        key = "lease_renew_interval_seconds" if number % 2 else "lease_margin_seconds"
        with suppress(UsageError):
            put(database, key, 5.0 + number / 10)

    at_once(10, change)
    assert load(database).checked()
    assert len(asdict(load(database))) == len(fields(EngineSettings))
