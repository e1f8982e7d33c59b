"""Many short runs under way while something goes wrong, and what must be true of them afterwards."""

import shutil
import threading
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import Self

from sqlalchemy import text

from support import work
from support.checker import check_history
from support.daemons import eventually
from support.makers import add_job, spec
from tsuzuki.model.errors import Conflict, Unreachable
from tsuzuki.model.overlap import ConcurrencyPolicy
from tsuzuki.model.retry import RetryPolicy
from tsuzuki.model.run import Run
from tsuzuki.model.states import LIVE_STATES, Reason, RunState
from tsuzuki.services.runs import Request, Runs
from tsuzuki.store.runs import runs as stored
from tsuzuki.store.sql.database import Database

GIVEN_UP = frozenset({Reason.WORKER_LOST, Reason.NOT_CONFIRMED})
"""How an attempt may end that chaos ended: with its worker, or for want of its database."""

AGAIN_SOON = RetryPolicy(max_retries=10, initial_seconds=0.5, factor=1.5)


class Load:
    """Asks for piece after piece of work. Without an answer it asks again, for the same piece."""

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
        self._file = folder / work.FILE
        self._seconds = seconds
        self._pause_seconds = pause_seconds
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self.confirmed: dict[str, int] = {}
        shutil.copy(work.__file__, folder)
        with database.write() as connection:
            place = "INTEGER PRIMARY KEY" if database.is_sqlite else "BIGSERIAL PRIMARY KEY"
            columns = f"(place {place}, key TEXT, attempt INTEGER)"
            connection.execute(text(f"CREATE TABLE {work.TABLE} {columns}"))
        options = {"function": "work:brief"}
        add_job(
            database,
            spec(
                self.JOB,
                handler="python",
                options=options,
                concurrency_policy=ConcurrencyPolicy.ALLOW,
                retry=AGAIN_SOON,
            ),
        )

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *problem: object) -> None:
        self._stopping.set()
        self._thread.join(60)

    def ask_at_once(self, count: int) -> None:
        """So many pieces in one transaction."""
        keys = [f"piece-{number}" for number in range(len(self.confirmed), count)]
        submitted = self._runs.submit_many([self._request(key) for key in keys])
        self.confirmed |= {key: one.run_id for key, one in zip(keys, submitted, strict=True)}

    def ends(self) -> int:
        """How many executions have come to their end so far."""
        return sum(word == "end" for _, _, word in self._ledger())

    def wait_for_ends(self, more: int) -> None:
        """Until so many more executions have come to their end: work is really being done."""
        enough = self.ends() + more
        eventually(lambda: self.ends() >= enough, what=f"{more} more executions to end")

    def wait_for_all(self) -> None:
        """Until every piece has been executed to its end at least once."""
        ended = {key for key, _, word in self._ledger() if word == "end"}
        eventually(
            lambda: (
                {key for key, _, word in self._ledger() if word == "end"} >= set(self.confirmed)
            ),
            what=f"what is missing: {set(self.confirmed) - ended}",
        )

    def settle(self, *, somebody_was_frozen: bool = False) -> list[Run]:
        """Wait until nothing is left to do; then check that nothing was lost or doubled, and that no
        two attempts at one piece were ever under way together. Answers all runs.

        Only a process that was frozen in the middle of something cannot know better when it wakes:
        what it does then outside the database nobody can take back, but no row of it is accepted."""
        eventually(self._is_done, what="every run to end", seconds=60.0)
        runs = check_history(self._database)
        chains: dict[str, list[Run]] = defaultdict(list)
        for run in runs:
            if run.job_name == self.JOB:
                chains[str(run.arguments["key"])].append(run)
        assert {key: chain[0].id for key, chain in chains.items()} == self.confirmed
        for chain in chains.values():
            *given_up, last = chain
            assert last.state is RunState.SUCCEEDED
            assert {run.reason for run in given_up} <= GIVEN_UP
        succeeded = {(key, chain[-1].attempt) for key, chain in chains.items()}
        ledger, rows = self._ledger(), self._rows()
        for words in ("begin", "end"):
            noted = [(key, attempt) for key, attempt, word in ledger if word == words]
            assert len(noted) == len(set(noted)), "an attempt was executed twice"
            assert succeeded <= set(noted)
        if not somebody_was_frozen:
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
            rows = connection.execute(text(f"SELECT key, attempt FROM {work.TABLE} ORDER BY place"))
            return [(row.key, row.attempt) for row in rows]

    def _is_done(self) -> bool:
        with self._database.read() as connection:
            counted = stored.count_by_state(connection)
        return not any(counted.get(state, 0) for state in LIVE_STATES)

    def _ask(self) -> None:
        while not self._stopping.is_set():
            key = f"piece-{len(self.confirmed)}"
            with suppress(Unreachable, Conflict):
                self.confirmed[key] = self._runs.submit(self._request(key)).run_id
            self._stopping.wait(self._pause_seconds)

    def _request(self, key: str) -> Request:
        arguments = {"key": key, "seconds": self._seconds}
        return Request(job=self.JOB, arguments=arguments, idempotency_key=key)


def _check_order(attempts: list[tuple[str, int]]) -> None:
    """No attempt at a piece is heard of after a later one has begun."""
    newest: dict[str, int] = {}
    for key, attempt in attempts:
        assert attempt >= newest.get(key, 0), f"{key}: attempt {attempt} after {newest[key]}"
        newest[key] = attempt
