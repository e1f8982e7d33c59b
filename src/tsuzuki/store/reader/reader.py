"""Jobs and runs as they are stored, through a driver's connection."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from datetime import datetime
from typing import Any

from tsuzuki.model.job import Job
from tsuzuki.model.run import CancelRequest, Run, Transition
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.store.reader import statements
from tsuzuki.store.reader.connection import CannotRead, Send, connect
from tsuzuki.store.rows import (
    TRANSITION_COLUMNS,
    cancel_request_from,
    job_from,
    run_from,
    transition_from,
)
from tsuzuki.store.sql.stored_values import from_json, from_text, in_utc

TIMES = frozenset(
    field.name
    for kind in (Job, Run, Transition)
    for field in fields(kind)
    if field.type in (datetime, datetime | None)
) | {"requested_at"}
JSON = frozenset({"options", "arguments", "schedule", "retry", "tags", "result"})
FLAGS = frozenset({"enabled"})
"""The columns whose values the database stores in another form than the model has them."""


class StoredRows:
    """One connection, and what can be asked through it."""

    def __init__(self, send: Send, *, is_sqlite: bool) -> None:
        self._send = send
        self._readers: dict[str, Callable[[Any], Any]] = {
            **dict.fromkeys(TIMES, from_text if is_sqlite else in_utc),
            **dict.fromkeys(JSON, from_json),
            **dict.fromkeys(FLAGS, bool),
        }

    def require_revisions(self, expected: Mapping[str, str]) -> None:
        """Raise `CannotRead` unless the tables of every component are at the revision of this version."""
        for version_table, revision in expected.items():
            if self._send(f"SELECT version_num FROM {version_table}", ()) != [(revision,)]:
                raise CannotRead(f"{version_table} is not at {revision}")

    def jobs(self) -> list[Job]:
        """Every job that has not been removed, by name."""
        return [
            job_from(row) for row in self._rows(statements.ALL_JOBS, (), statements.JOB_COLUMNS)
        ]

    def runs(self, wanted: RunFilter) -> list[Run]:
        sql, values = statements.find_runs(wanted)
        return [run_from(row) for row in self._rows(sql, values, statements.RUN_NAMES)]

    def last_ended(self) -> list[Run]:
        """The newest run of each job that has ended."""
        return [
            run_from(row) for row in self._rows(statements.LAST_ENDED, (), statements.RUN_NAMES)
        ]

    def run(self, run_id: int) -> Run | None:
        return self._one_run(statements.RUN_BY_ID, run_id)

    def run_by_key(self, idempotency_key: str) -> Run | None:
        return self._one_run(statements.RUN_BY_KEY, idempotency_key)

    def history(self, run_id: int) -> list[Transition]:
        rows = self._rows(statements.HISTORY, (run_id,), TRANSITION_COLUMNS)
        return [transition_from(row) for row in rows]

    def cancel_request(self, run_id: int) -> CancelRequest | None:
        rows = self._rows(statements.CANCEL_REQUEST, (run_id,), statements.CANCEL_REQUEST_COLUMNS)
        return next((cancel_request_from(row) for row in rows), None)

    def _one_run(self, sql: str, value: Any) -> Run | None:
        return next(
            (run_from(row) for row in self._rows(sql, (value,), statements.RUN_NAMES)), None
        )

    def _rows(
        self, sql: str, values: Sequence[Any], names: Sequence[str]
    ) -> Iterator[dict[str, Any]]:
        for row in self._send(sql, values):
            values_by_name = dict(zip(names, row, strict=True))
            for name in self._readers.keys() & values_by_name.keys():
                values_by_name[name] = self._readers[name](values_by_name[name])
            yield values_by_name


@contextmanager
def open_reader(url: str) -> Iterator[StoredRows]:
    """Opening and every question raise `CannotRead` for an error of the driver."""
    with connect(url) as (send, is_sqlite):
        yield StoredRows(send, is_sqlite=is_sqlite)
