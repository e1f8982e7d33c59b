"""Caps: how many posts a feed may make now."""

from dataclasses import dataclass
from datetime import datetime, timedelta

from tsuzuki.collectors.feeds.options import PostCaps
from tsuzuki.collectors.feeds.queries import posts
from tsuzuki.store.sql.database import Connection

HOUR = timedelta(hours=1)
DAY = timedelta(days=1)


@dataclass(frozen=True, kw_only=True)
class PostsLeft:
    """How many posts a feed may make now, and when the next if none."""

    count: int
    open_at: datetime | None = None


def posts_left(
    connection: Connection, feed_id: int, caps: PostCaps, *, now: datetime, posted_in_run: int = 0
) -> PostsLeft:
    """What the caps leave a feed, of whose posts a run has made some."""
    left = [caps.per_run - posted_in_run] if caps.per_run is not None else []
    windows = [(caps.per_hour, HOUR), (caps.per_day, DAY)]
    most = max((cap for cap, _ in windows if cap is not None), default=0)
    times = posts.times(connection, feed_id, since=now - DAY, most=most) if most else []
    open_at: list[datetime] = []
    for cap, window in windows:
        if cap is None:
            continue
        within = [time for time in times if time > now - window]
        left.append(cap - len(within))
        if 0 < cap <= len(within):
            open_at.append(within[cap - 1] + window)
        elif cap == 0:
            open_at.append(now + window)
    count = max(0, min(left, default=1_000_000))
    return PostsLeft(count=count, open_at=max(open_at, default=None) if count == 0 else None)
