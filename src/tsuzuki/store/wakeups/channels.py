"""Wake-ups between processes: NOTIFY on a channel, for all that listen there or for workers by name.

Hints only: a lost wake-up costs a poll interval, never a run. Workers are named, because in a large fleet
most have nothing to do with what one was assigned.

PostgreSQL sends NOTIFY with the commit. On SQLite a counter per channel in the table `notices` shows which
channel was notified; `listeners` describes how other processes learn that they should read it.
"""

from collections.abc import Collection
from enum import StrEnum

from sqlalchemy import Text, bindparam, func, select, update

from tsuzuki.model.run import Run
from tsuzuki.store.schema.tables import notices
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.prepared import AnyConnection, execute


class WakeupChannel(StrEnum):
    """Which loops should poll. The value is the name of PostgreSQL's channel."""

    LEADER = "tsuzuki_leader"
    """There is something to assign, or capacity for it."""

    WORKERS = "tsuzuki_workers"
    """There is something for workers that are not named, or for more of them than can be."""


ALL_CHANNELS = frozenset(WakeupChannel)

NAMES_BYTES_MAX = 7_000
"""What fits into a payload of NOTIFY, with a margin. Longer lists wake every worker."""

_CHANNEL = bindparam("channel", type_=Text())
_NOTIFY = select(func.pg_notify(_CHANNEL, bindparam("payload", type_=Text())))
_COUNT = update(notices).where(notices.c.audience == _CHANNEL).values(stamp=notices.c.stamp + 1)


def notify(connection: AnyConnection, *names: str) -> None:
    """Wake listeners when this transaction commits: by channel, or workers by name. On SQLite every
    worker wakes when one is named."""
    for channel, payload in messages(names).items():
        if is_sqlite(connection.dialect):
            execute(connection, _COUNT, {"channel": channel.value})
        else:
            execute(connection, _NOTIFY, {"channel": channel.value, "payload": payload})


def concerned_by_cancel(run: Run) -> frozenset[str]:
    """Which processes to wake when an operator canceled a run: who holds it, and the leader, which may assign its
    slot."""
    return frozenset({holder_of(run), WakeupChannel.LEADER})


def holder_of(run: Run) -> str:
    """Which process to wake when a run was ended from outside: the worker that it was assigned to, else the leader."""
    return run.assigned_worker_id or WakeupChannel.LEADER


def messages(names: Collection[str]) -> dict[WakeupChannel, str]:
    """The channels to notify, each with its payload: names of workers, or nothing for all."""
    found = {channel: "" for channel in WakeupChannel if channel in names}
    workers = " ".join(sorted(set(names) - ALL_CHANNELS))
    if workers and WakeupChannel.WORKERS not in found:
        found[WakeupChannel.WORKERS] = workers if len(workers.encode()) <= NAMES_BYTES_MAX else ""
    return found


def recipients(channel: WakeupChannel, payload: str) -> Collection[str]:
    """The names that a message was for: the inverse of `messages`."""
    return payload.split() or {channel}
