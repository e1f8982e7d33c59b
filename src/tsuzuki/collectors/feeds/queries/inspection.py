"""Whether `items` and `waiting_items` agree, for `tsuzuki db check`."""

from sqlalchemy import Connection, exists, select

from tsuzuki.collectors.feeds.items.item import ItemStatus
from tsuzuki.collectors.feeds.tables import items, waiting_items
from tsuzuki.store.sql.prepared import execute

NAMED_MAX = 10
"""How many items are named of each problem."""

_WAITS = exists().where(waiting_items.c.item_id == items.c.id)
# One status at a time, which an index serves: most items are processed.
_MISSING = [
    select(items.c.id).where(items.c.status == int(status), ~_WAITS).limit(NAMED_MAX)
    for status in ItemStatus
    if status is not ItemStatus.PROCESSED
]
_CONTRADICTING = (
    select(waiting_items.c.item_id)
    .outerjoin(items, items.c.id == waiting_items.c.item_id)
    .where(
        items.c.status.is_(None)
        | (items.c.status == int(ItemStatus.PROCESSED))
        | (waiting_items.c.is_pending != (items.c.status == int(ItemStatus.PENDING)))
    )
    .limit(NAMED_MAX)
)


def problems(connection: Connection) -> list[str]:
    unseen = [item for query in _MISSING for item in execute(connection, query).scalars()]
    wrong = execute(connection, _CONTRADICTING).scalars()
    return [
        *(f"item {item} is unprocessed but would never be picked up" for item in unseen),
        *(f"item {item} and its row in waiting_items disagree" for item in wrong),
    ]
