"""Where each feed is, what its last fetch gave and how it fares: statements over `feeds`.

A run claims the feeds it fetches, and stores a result only while it holds the feed: if the address was changed
meanwhile, the claim is gone, and what came from the old address is dropped.
"""

from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from datetime import datetime
from functools import lru_cache
from typing import Any, NamedTuple

from sqlalchemy import (
    BigInteger,
    Boolean,
    Connection,
    Text,
    bindparam,
    literal_column,
    null,
    or_,
    select,
    update,
)
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.feeds.options import FeedsOptions
from tsuzuki.collectors.feeds.tables import feed_items, feeds, items
from tsuzuki.collectors.kit.upsert import insert_from
from tsuzuki.model.states import RunState
from tsuzuki.store.schema.tables import job_runs
from tsuzuki.store.sql.batch import Columns, unpack
from tsuzuki.store.sql.prepared import execute, execute_batch, parameters_for
from tsuzuki.store.sql.types import KeyText, PlainText, UtcTime
from tsuzuki.store.sql.value_list import in_list

RHYTHM_ITEMS = 20

_JOB = bindparam("job", type_=Text())
_ID = bindparam("feed_id", type_=BigInteger())
_RUN = bindparam("run", type_=BigInteger())
_NOW = bindparam("now", type_=UtcTime())
_IS_OURS = feeds.c.held_by_run == _RUN
_FARES_WELL = {
    "tried_at": _NOW,
    "good_at": _NOW,
    "failing_since": null(),
    "failures": 0,
    "error": null(),
    "not_before": null(),
    "ended_at": null(),
    "held_by_run": null(),
}
_ADDED: Columns = {"name": KeyText(), "url": KeyText()}
_UNCHANGED: Columns = {
    "id": BigInteger(),
    "etag": PlainText(),
    "last_modified": PlainText(),
    "moved_to": KeyText(),
    "full_at": UtcTime(),
}


@dataclass(frozen=True, kw_only=True)
class StoredFeed:
    """A row of `feeds`."""

    id: int
    job_name: str
    name: str
    url: str
    moved_to: str | None
    etag: str | None
    last_modified: str | None
    is_conditional: bool
    body_hash: str | None
    title: str | None
    first_good_at: datetime | None
    tried_at: datetime | None
    good_at: datetime | None
    full_at: datetime | None
    new_at: datetime | None
    failing_since: datetime | None
    failures: int
    error: str | None
    not_before: datetime | None
    ended_at: datetime | None
    removed_at: datetime | None
    held_by_run: int | None

    @classmethod
    def never_fetched(cls, job_name: str, name: str, url: str) -> "StoredFeed":
        """A feed as it is before its first fetch, without a row."""
        unknown: dict[str, Any] = dict.fromkeys(field.name for field in fields(cls))
        known = {"id": 0, "failures": 0, "is_conditional": False}
        return cls(**{**unknown, **known, "job_name": job_name, "name": name, "url": url})

    @property
    def address(self) -> str:
        """Where it is fetched from: where it has moved to, else its address in the job."""
        return self.moved_to or self.url


@dataclass(frozen=True, kw_only=True)
class Fetched:
    """What is stored of a good fetch. `error` is what was wrong with it all the same."""

    error: str | None = None
    etag: str | None
    last_modified: str | None
    moved_to: str | None
    is_conditional: bool
    body_hash: str | None
    title: str | None
    first_good_at: datetime
    full_at: datetime | None
    new_at: datetime | None


class UnchangedFeed(NamedTuple):
    """What is stored of a feed that gave nothing new, in the order of `_UNCHANGED`."""

    id: int
    etag: str | None
    last_modified: str | None
    moved_to: str | None
    full_at: datetime | None


@dataclass(frozen=True, kw_only=True)
class FailedFetch:
    """What is stored of a failed fetch."""

    error: str
    failing_since: datetime
    not_before: datetime | None
    moved_to: str | None
    ended_at: datetime | None


_OF_JOB = select(feeds).where(feeds.c.job_name == _JOB).order_by(feeds.c.name)
_ALL = select(feeds).order_by(feeds.c.job_name, feeds.c.name)
_HELD = select(feeds).where(feeds.c.id == _ID, _IS_OURS).with_for_update()
_NEWEST = (
    select(items.c.published_at)
    .join(feed_items, feed_items.c.item_id == items.c.id)
    .where(feed_items.c.feed_id == _ID)
    .order_by(feed_items.c.item_id.desc())
    .limit(literal_column(str(RHYTHM_ITEMS)))
)
_REMOVE = (
    update(feeds)
    .where(in_list(feeds.c.id, "feed_ids"), feeds.c.removed_at.is_(None))
    .values(removed_at=_NOW, held_by_run=null())
)
_POINT_TO = (
    update(feeds)
    .where(feeds.c.id == _ID)
    .values(
        **parameters_for(feeds, "url"),
        moved_to=null(),
        etag=null(),
        last_modified=null(),
        is_conditional=True,
        body_hash=null(),
        first_good_at=null(),
        full_at=null(),
        failing_since=null(),
        failures=0,
        error=null(),
        not_before=null(),
        ended_at=null(),
        removed_at=null(),
        held_by_run=null(),
    )
)
_HOLDER_IS_RUNNING = (
    select(job_runs.c.id)
    .where(job_runs.c.id == feeds.c.held_by_run, job_runs.c.state == RunState.RUNNING)
    .exists()
)
_CLAIM = (
    update(feeds)
    .where(
        in_list(feeds.c.id, "feed_ids"),
        or_(feeds.c.held_by_run.is_(None), _IS_OURS, ~_HOLDER_IS_RUNNING),
    )
    .values(held_by_run=_RUN)
    .returning(feeds.c.id)
)
_RELEASE = update(feeds).where(in_list(feeds.c.id, "feed_ids"), _IS_OURS).values(held_by_run=null())
_SET_FETCHED = (
    update(feeds)
    .where(feeds.c.id == _ID, _IS_OURS)
    .values(
        **{**_FARES_WELL, **parameters_for(feeds, "error")},
        **parameters_for(
            feeds,
            "etag",
            "last_modified",
            "moved_to",
            "is_conditional",
            "body_hash",
            "title",
            "first_good_at",
            "full_at",
            "new_at",
        ),
    )
)
_SET_FAILED = (
    update(feeds)
    .where(feeds.c.id == _ID, _IS_OURS)
    .values(
        tried_at=_NOW,
        failures=feeds.c.failures + 1,
        held_by_run=null(),
        **parameters_for(feeds, "error", "failing_since", "not_before", "moved_to", "ended_at"),
    )
)
_POSTPONE = (
    update(feeds)
    .where(feeds.c.id == _ID, _IS_OURS)
    .values(held_by_run=null(), **parameters_for(feeds, "not_before"))
)


def of_job(connection: Connection, job_name: str) -> dict[str, StoredFeed]:
    """The feeds of a job by name, with those that it no longer has."""
    rows = execute(connection, _OF_JOB, {"job": job_name}).mappings()
    return {row["name"]: StoredFeed(**row) for row in rows}


def find(connection: Connection, job_name: str | None = None) -> list[StoredFeed]:
    """Every feed there ever was, or those of one job, by name."""
    if job_name is not None:
        return list(of_job(connection, job_name).values())
    return [StoredFeed(**row) for row in execute(connection, _ALL).mappings()]


def sync_feeds(
    connection: Connection, job_name: str, options: FeedsOptions, *, now: datetime
) -> dict[str, StoredFeed]:
    """Let the rows of a job follow its options, and return those of the feeds it has.

    A feed at another address, or one that comes back, starts anew; by what it lists it is found out whether it is
    still the same one (`found`).
    """
    stored = of_job(connection, job_name)
    wanted = {name: feed.url for name, feed in options.feeds.items()}
    added = [(name, url) for name, url in sorted(wanted.items()) if name not in stored]
    execute_batch(connection, _add, _ADDED, added, {"job": job_name})
    gone = [feed.id for name, feed in stored.items() if name not in wanted and not feed.removed_at]
    if gone:
        execute(connection, _REMOVE, {"feed_ids": gone, "now": now})
    redirected = [
        feed
        for name, feed in stored.items()
        if name in wanted and (feed.url != wanted[name] or feed.removed_at)
    ]
    for feed in redirected:
        execute(connection, _POINT_TO, {"feed_id": feed.id, "url": wanted[feed.name]})
    if added or redirected:
        stored = of_job(connection, job_name)
    return {name: stored[name] for name in wanted}


@lru_cache
def _add(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    added = unpack(dialect, _ADDED, varying)
    values = {
        **dict(added.c.items()),
        "job_name": _JOB,
        "is_conditional": bindparam("is_conditional", True, type_=Boolean()),
        "failures": bindparam("failures", 0, type_=feeds.c.failures.type),
    }
    return insert_from(dialect, feeds, values).on_conflict_do_nothing()


def claim(connection: Connection, feed_ids: Collection[int], *, run_id: int) -> set[int]:
    """Claim feeds for a run; those that another RUNNING run holds are left to it."""
    if not feed_ids:
        return set()
    rows = execute(connection, _CLAIM, {"feed_ids": sorted(feed_ids), "run": run_id})
    return set(rows.scalars())


def newest_dates(connection: Connection, feed_id: int) -> list[datetime]:
    """When the items were published that the feed has listed last, at most `RHYTHM_ITEMS` of them."""
    rows = execute(connection, _NEWEST, {"feed_id": feed_id})
    return [published_at for published_at in rows.scalars() if published_at is not None]


def held_feed(connection: Connection, feed_id: int, *, run_id: int) -> StoredFeed | None:
    """The feed, if the run still holds it; it stays so until this transaction ends."""
    row = execute(connection, _HELD, {"feed_id": feed_id, "run": run_id}).mapping_or_none()
    return None if row is None else StoredFeed(**row)


def set_unchanged(
    connection: Connection, unchanged: Sequence[UnchangedFeed], *, run_id: int, now: datetime
) -> None:
    """Feeds that gave nothing new."""
    execute_batch(connection, _set_unchanged, _UNCHANGED, unchanged, {"run": run_id, "now": now})


@lru_cache
def _set_unchanged(dialect: Dialect, varying: tuple[str, ...]) -> Any:
    batch = unpack(dialect, _UNCHANGED, varying)
    said = {name: batch.c[name] for name in _UNCHANGED if name != "id"}
    return update(feeds).where(feeds.c.id == batch.c.id, _IS_OURS).values(**_FARES_WELL, **said)


def set_fetched(
    connection: Connection, feed_id: int, fetched: Fetched, *, run_id: int, now: datetime
) -> None:
    """A good fetch: the feed fares well, and is released."""
    execute(
        connection, _SET_FETCHED, {"feed_id": feed_id, "run": run_id, "now": now, **vars(fetched)}
    )


def set_failed(
    connection: Connection, feed_id: int, failed: FailedFetch, *, run_id: int, now: datetime
) -> None:
    """A failed fetch: counted, and the feed is released."""
    execute(
        connection, _SET_FAILED, {"feed_id": feed_id, "run": run_id, "now": now, **vars(failed)}
    )


def postpone(connection: Connection, feed_id: int, *, run_id: int, until: datetime) -> None:
    """The feed was not asked: its host wants a pause."""
    execute(connection, _POSTPONE, {"feed_id": feed_id, "run": run_id, "not_before": until})
