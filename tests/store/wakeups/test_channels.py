"""Who hears what: wake-ups go out with the commit, to an audience or to workers by their names."""

from collections.abc import Iterator
from contextlib import closing

import pytest

from support.databases import opened
from support.dialects import only_on_postgresql
from support.factories import add_job
from tsuzuki.engine.role import ProcessRole
from tsuzuki.store.sql.database import Database
from tsuzuki.store.wakeups import channels, listeners
from tsuzuki.store.wakeups.channels import ALL_CHANNELS, NAMES_BYTES_MAX, WakeupChannel, messages
from tsuzuki.store.wakeups.listeners import Listener

LOOKS = 30
"""A wait takes a tenth of a second at most where nothing was notified."""


@pytest.fixture
def elsewhere(live_database: Database, database_url: str) -> Iterator[Database]:
    with opened(database_url) as elsewhere:
        yield elsewhere


@pytest.fixture
def listener(live_database: Database) -> Iterator[Listener]:
    with closing(listeners.listen(live_database)) as listener:
        yield listener


def call(database: Database, *names: str) -> None:
    with database.write() as connection:
        channels.notify(connection, *names)


def heard(listener: Listener) -> set[str]:
    """What is heard first."""
    for _ in range(LOOKS):
        if names := listener.wait(1.0):
            return set(names)
    raise AssertionError("nothing was heard")


@pytest.mark.parametrize("audience", WakeupChannel)
def test_an_audience_is_called(
    elsewhere: Database, listener: Listener, audience: WakeupChannel
) -> None:
    call(elsewhere, audience)
    assert heard(listener) == {audience}


def test_a_new_definition_wakes_the_leader_and_the_workers(
    elsewhere: Database, listener: Listener
) -> None:
    """Workers register what they can execute of the jobs that there are."""
    add_job(elsewhere)
    woken = heard(listener)
    while woken != ALL_CHANNELS:
        woken |= heard(listener)


def test_workers_are_called_by_their_names_where_names_can_be_said(
    elsewhere: Database, listener: Listener
) -> None:
    call(elsewhere, "host-1-aa", "host-2-bb")
    expected = {WakeupChannel.WORKERS.value} if elsewhere.is_sqlite else {"host-1-aa", "host-2-bb"}
    assert heard(listener) == expected


def test_more_names_than_can_be_said_are_all_workers(
    elsewhere: Database, listener: Listener
) -> None:
    call(elsewhere, *(f"host-{number:050}" for number in range(NAMES_BYTES_MAX // 50)))
    assert heard(listener) == {WakeupChannel.WORKERS}


@only_on_postgresql
def test_a_process_that_only_works_is_not_woken_for_the_leader(
    live_database: Database, elsewhere: Database
) -> None:
    channels = ProcessRole(lead=False).channels
    with closing(listeners.listen(live_database, channels)) as listener:
        call(elsewhere, WakeupChannel.LEADER)
        call(elsewhere, WakeupChannel.WORKERS)
        assert heard(listener) == {WakeupChannel.WORKERS}


def test_what_is_not_committed_is_not_said(elsewhere: Database, listener: Listener) -> None:
    def fail() -> None:
        with elsewhere.write() as connection:
            channels.notify(connection, WakeupChannel.WORKERS)
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fail()
    call(elsewhere, WakeupChannel.LEADER)
    assert heard(listener) == {WakeupChannel.LEADER}


@pytest.mark.parametrize(
    ("names", "said"),
    [
        ((), {}),
        (ALL_CHANNELS, {WakeupChannel.LEADER: "", WakeupChannel.WORKERS: ""}),
        (("b", "a", "b"), {WakeupChannel.WORKERS: "a b"}),
        (("a", WakeupChannel.WORKERS), {WakeupChannel.WORKERS: ""}),
        (("a", WakeupChannel.LEADER), {WakeupChannel.LEADER: "", WakeupChannel.WORKERS: "a"}),
    ],
)
def test_names_are_said_on_as_few_channels_as_it_takes(
    names: tuple[str, ...], said: dict[WakeupChannel, str]
) -> None:
    assert messages(names) == said
