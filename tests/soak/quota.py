"""The quota of the search for books: it is small at first, and is raised by an operator once a run has stopped for it.

Until then no more requests may have reached the server than the quota allows, whatever was killed or cut meanwhile.
"""

from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import text

from soak.nodes import Node
from soak.outside import Outside
from tsuzuki.store.sql.database import Database

RAISED = 1_000_000
FOLLOW_UPS = text(
    "SELECT count(*) FROM tsuzuki_job_runs WHERE idempotency_key LIKE 'books-quota:%'"
)
"""A run that stops for the quota asks for one at the moment when it is renewed."""


@dataclass(kw_only=True)
class Quota:
    """Step it as long as the soak runs."""

    limit: int
    database: Database
    outside: Outside
    nodes: list[Node]
    requests: int | None = None
    """How many had reached the server when it was raised."""

    def step(self) -> list[str]:
        """Raise it if it is time: the file is changed and every process started anew. Answers what was done."""
        if self.requests is not None or not self._has_stopped_a_run():
            return []
        self.requests = len(self.outside.servers["books"].requests)
        write_configuration(self.nodes[0].folder, self.outside, daily_limit=RAISED)
        for node in self.nodes:
            node.kill()
            node.start()
        return [f"quota of {self.limit} calls raised after {self.requests} requests"]

    def missing(self) -> list[str]:
        if self.requests is not None:
            return []
        came = len(self.outside.servers["books"].requests)
        return [f"quota: no run has stopped for its {self.limit} calls, {came} requests came"]

    def wrong(self) -> list[str]:
        requests = self.requests or 0
        if requests <= self.limit:
            return []
        return [f"quota: {requests} requests came, {self.limit} calls were allowed"]

    def _has_stopped_a_run(self) -> bool:
        with self.database.read() as connection:
            return bool(connection.execute(FOLLOW_UPS).scalar_one())


def write_configuration(workspace: Path, outside: Outside, *, daily_limit: int) -> None:
    """In one step: a process that starts meanwhile reads the old file or the new one."""
    new = workspace / "tsuzuki.yaml.new"
    new.write_text(outside.configuration(daily_limit=daily_limit), encoding="utf-8")
    new.replace(workspace / "tsuzuki.yaml")
