"""A load of many short runs during a fault, and the checks afterwards."""

import shutil
import threading
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Self

from sqlalchemy import text

from support import load_handler
from support.daemons import TIMEOUT_SECONDS, eventually
from support.factories import add_job, spec
from support.history_checker import check_history
from support.run_counts import count_by_state
from tsuzuki.model.errors import Conflict, Unreachable
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.run import Run
from tsuzuki.model.states import LIVE_STATES, Reason, RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.sql.database import Database

FAULT_REASONS = frozenset({Reason.WORKER_LOST, Reason.NOT_CONFIRMED})
"""Failure reasons that injected faults may cause."""

OPEN_MAX = 40
"""Maximum number of waiting runs: more than the workers can hold, but quickly finished when the load ends."""

QUICK_RETRIES = RetryPolicy(max_retries=10, initial_seconds=0.5, factor=1.5)


class Load:
    """Submits runs in turn, each with an idempotency key, and repeats a submission that got no reply."""

    JOB = "brief"

    def __init__(
        self,
        database: Database,
        folder: Path,
        *,
        seconds: float = 0.05,
        pause_seconds: float = 0.05,
    ) -> None:
        self._database = database
        self._runs = Runs(database=database, actor="test")
        self._file = folder / load_handler.FILE
        self._seconds = seconds
        self._pause_seconds = pause_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._submit, daemon=True)
        self.confirmed: dict[str, int] = {}
        shutil.copy(load_handler.__file__, folder)
        with database.write() as connection:
            place = "INTEGER PRIMARY KEY" if database.is_sqlite else "BIGSERIAL PRIMARY KEY"
            columns = f"(place {place}, key TEXT, attempt INTEGER)"
            connection.execute(text(f"CREATE TABLE {load_handler.TABLE} {columns}"))
        options = {"function": "load_handler:brief"}
        add_job(
            database,
            spec(
                self.JOB,
                handler="python",
                options=options,
                concurrency_policy=ConcurrencyPolicy.ALLOW,
                retry=QUICK_RETRIES,
            ),
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._stopping.set()
        self._thread.join(TIMEOUT_SECONDS)

    def submit_at_once(self, count: int) -> None:
        """Submit `count` runs in one transaction."""
        keys = [f"piece-{number}" for number in range(len(self.confirmed), count)]
        submitted = self._runs.submit_many([self._request(key) for key in keys])
        self.confirmed |= {key: one.run_id for key, one in zip(keys, submitted, strict=True)}

    def ends(self) -> int:
        """Number of executions that have ended so far."""
        return sum(word == "end" for _, _, word in self._ledger())

    def attempts(self, word: str) -> set[tuple[str, int]]:
        """The keys and attempts of which the ledger has that word: `start` or `end`."""
        return {(key, attempt) for key, attempt, noted in self._ledger() if noted == word}

    def wait_for_ends(self, more: int) -> None:
        """Wait until `more` further executions have ended, as proof of progress."""
        enough = self.ends() + more
        eventually(lambda: self.ends() >= enough, what=f"{more} more executions to end")

    def wait_for_all(self) -> None:
        """Wait until every submitted run was executed to its end at least once."""
        ended = {key for key, _, word in self._ledger() if word == "end"}
        eventually(
            lambda: (
                {key for key, _, word in self._ledger() if word == "end"} >= set(self.confirmed)
            ),
            what=f"what is missing: {set(self.confirmed) - ended}",
        )

    def settle(self, *, was_paused: bool = False) -> list[Run]:
        """Wait for quiescence, then check that no run was lost or executed twice, and that two attempts
        never overlapped. Answers all runs.

        `was_paused`: a process was paused during an execution. When it resumes it may still act
        outside the database before it notices; but no row of it is accepted (fencing)."""
        eventually(self._is_done, what="every run to end")
        runs = check_history(self._database)
        chains: dict[str, list[Run]] = defaultdict(list)
        for run in runs:
            if run.job_name == self.JOB:
                chains[str(run.arguments["key"])].append(run)
        assert {key: chain[0].id for key, chain in chains.items()} == self.confirmed
        for chain in chains.values():
            *failed, last = chain
            assert last.state is RunState.SUCCEEDED
            assert {run.reason for run in failed} <= FAULT_REASONS
        succeeded = {(key, chain[-1].attempt) for key, chain in chains.items()}
        ledger, rows = self._ledger(), self._rows()
        for words in ("start", "end"):
            noted = [(key, attempt) for key, attempt, word in ledger if word == words]
            assert len(noted) == len(set(noted)), "an attempt was executed twice"
            assert succeeded <= set(noted)
        if not was_paused:
            _check_order([(key, attempt) for key, attempt, _ in ledger])
        assert len(rows) == len(set(rows))
        assert succeeded <= set(rows)
        _check_order(rows)
        return runs

    def _ledger(self) -> list[tuple[str, int, str]]:
        if not self._file.exists():
            return []
        lines = [line.split() for line in self._file.read_text("utf-8").splitlines()]
        return [(key, int(attempt), word) for key, attempt, word in lines]

    def _rows(self) -> list[tuple[str, int]]:
        with self._database.read() as connection:
            rows = connection.execute(
                text(f"SELECT key, attempt FROM {load_handler.TABLE} ORDER BY place")
            )
            return [(row.key, row.attempt) for row in rows]

    def _is_done(self) -> bool:
        with self._database.read() as connection:
            counted = count_by_state(connection)
        return not any(counted.get(state, 0) for state in LIVE_STATES)

    def _submit(self) -> None:
        while not self._stopping.is_set():
            key = f"piece-{len(self.confirmed)}"
            if len(self.confirmed) - self.ends() < OPEN_MAX:
                with suppress(Unreachable, Conflict):
                    self.confirmed[key] = self._runs.submit(self._request(key)).run_id
            self._stopping.wait(self._pause_seconds)

    def _request(self, key: str) -> Request:
        arguments = {"key": key, "seconds": self._seconds}
        return Request(job=self.JOB, arguments=arguments, idempotency_key=key)


def _check_order(attempts: list[tuple[str, int]]) -> None:
    """No attempt appears after a later one has started."""
    newest: dict[str, int] = {}
    for key, attempt in attempts:
        assert attempt >= newest.get(key, 0), f"{key}: attempt {attempt} after {newest[key]}"
        newest[key] = attempt
