"""Claims: take an item for a run, unless another run that is RUNNING has it.

An item is a row of a table with a column `held_by_run`. A run that is no longer RUNNING holds nothing,
so a crash releases what it had.
"""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import BigInteger, Connection, Table, bindparam, select, update

from tsuzuki.model.states import RunState
from tsuzuki.store.runs import runs
from tsuzuki.store.sql.prepared import execute


class Claims:
    """The claims on the rows of one table. A key names every column of its primary key."""

    def __init__(self, table: Table) -> None:
        is_item = [
            column == bindparam(f"key_{column.name}", type_=column.type)
            for column in table.primary_key
        ]
        self._select_holder = select(table.c.held_by_run).where(*is_item).with_for_update()
        self._set_holder = (
            update(table)
            .where(*is_item)
            .values(held_by_run=bindparam("holder", type_=BigInteger()))
        )

    def take(self, connection: Connection, key: Mapping[str, Any], *, run_id: int) -> int:
        """Claim an item, and return the run that holds it now: this one, or another that is RUNNING."""
        holder: int | None = execute(connection, self._select_holder, _bound(key)).scalar_one()
        if holder is not None and holder != run_id and _is_running(connection, holder):
            return holder
        self._hold(connection, key, run_id)
        return run_id

    def is_held_by(self, connection: Connection, key: Mapping[str, Any], *, run_id: int) -> bool:
        """Whether the item is still this run's, and stays so until this transaction ends."""
        holder = execute(connection, self._select_holder, _bound(key)).scalar_one_or_none()
        return bool(holder == run_id)

    def release(self, connection: Connection, key: Mapping[str, Any]) -> None:
        """Leave the item to the next run."""
        self._hold(connection, key, None)

    def _hold(self, connection: Connection, key: Mapping[str, Any], holder: int | None) -> None:
        execute(connection, self._set_holder, {**_bound(key), "holder": holder})


def _bound(key: Mapping[str, Any]) -> dict[str, Any]:
    return {f"key_{name}": value for name, value in key.items()}


def _is_running(connection: Connection, run_id: int) -> bool:
    run = runs.get(connection, run_id)
    return run is not None and run.state is RunState.RUNNING
