"""The statements over parked models: those that said that they are not to be asked until later."""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, bindparam, case, delete, select, update
from sqlalchemy.engine import Dialect

from tsuzuki.collectors.feeds.tables import StepState, feed_models, item_steps
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import AnyConnection, execute, parameters_for
from tsuzuki.store.sql.types import KeyText, PlainText, UtcTime

_MODEL = bindparam("that_model", type_=KeyText())
_NOW = bindparam("now", type_=UtcTime())


@dataclass(frozen=True, kw_only=True)
class ParkedModel:
    """A model that is not asked before `parked_until`, save for one request from `probe_at` on."""

    model: str
    parked_until: datetime
    probe_at: datetime
    why: str


_SELECT_PARKED = select(
    feed_models.c.model, feed_models.c.parked_until, feed_models.c.probe_at, feed_models.c.why
).where(feed_models.c.parked_until > _NOW)
_TAKE_PROBE = (
    update(feed_models)
    .where((feed_models.c.model == _MODEL) & (feed_models.c.probe_at <= _NOW))
    .values(probe_at=bindparam("next_probe_at", type_=UtcTime()))
)
_UNPARK = delete(feed_models).where(feed_models.c.model == _MODEL)
_SELECT_ANSWERED = (
    select(item_steps.c.id)
    .where(item_steps.c.model == bindparam("that_name", type_=PlainText()))
    .where(item_steps.c.state == StepState.DONE.value)
    .order_by(item_steps.c.id.desc())
    .limit(1)
)


def park(
    connection: Connection, model: str, *, until: datetime, probe_at: datetime, why: str
) -> None:
    """Do not ask a model until then. A longer time that is stored already stays; the newest probe counts."""
    values = {"model": model, "parked_until": until, "probe_at": probe_at, "why": why}
    execute(connection, _park(connection.dialect), values)


@lru_cache
def _park(dialect: Dialect) -> Any:
    names = ("model", "parked_until", "probe_at", "why")
    insert = insert_into(dialect, feed_models).values(**parameters_for(feed_models, *names))
    new, old = insert.excluded, feed_models.c
    is_longer = new.parked_until > old.parked_until
    return insert.on_conflict_do_update(
        index_elements=[old.model],
        set_={
            "parked_until": case((is_longer, new.parked_until), else_=old.parked_until),
            "why": case((is_longer, new.why), else_=old.why),
            "probe_at": new.probe_at,
        },
    )


def parked(connection: AnyConnection, *, now: datetime) -> dict[str, ParkedModel]:
    """The models that are parked now, by name."""
    rows = execute(connection, _SELECT_PARKED, {"now": now}).mappings()
    return {row["model"]: ParkedModel(**row) for row in rows}


def take_probe(
    connection: Connection, model: str, *, now: datetime, next_probe_at: datetime
) -> bool:
    """Whether the caller may send the one request that finds out whether a parked model answers again."""
    values = {"that_model": model, "now": now, "next_probe_at": next_probe_at}
    return execute(connection, _TAKE_PROBE, values).rowcount == 1


def unpark(connection: Connection, model: str) -> None:
    """The model has answered: ask it as before."""
    execute(connection, _UNPARK, {"that_model": model})


def has_answered(connection: AnyConnection, model: str) -> bool:
    """Whether any step of any item was done with this model (`item_steps.model`)."""
    return bool(execute(connection, _SELECT_ANSWERED, {"that_name": model}).all())
