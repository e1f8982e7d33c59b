"""Past terms of leaders, for reading; triggers on leadership write them."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import Connection, Integer, bindparam, select

from tsuzuki.store.schema.operation_tables import leader_terms
from tsuzuki.store.sql.prepared import execute


@dataclass(frozen=True, kw_only=True)
class PastTerm:
    """Who led, from when to when; `ended_at` is None if the term goes on, or nothing was noted since its lease ran
    out."""

    epoch: int
    holder: str
    taken_at: datetime
    ended_at: datetime | None


_FIND = (
    select(leader_terms)
    .order_by(leader_terms.c.epoch.desc())
    .limit(bindparam("limit", type_=Integer()))
)


def find(connection: Connection, *, limit: int) -> list[PastTerm]:
    """The newest first."""
    return [PastTerm(**row) for row in execute(connection, _FIND, {"limit": limit}).mappings()]
