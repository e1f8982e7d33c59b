"""A reader of server-sent events over real HTTP, and moves of runs for it to read."""

import json
import socket
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPResponse
from time import monotonic
from types import TracebackType
from typing import Any, Self
from urllib.parse import quote, urlsplit

from support.databases import opened
from tsuzuki.model.run import RunRef
from tsuzuki.services.runs import Request
from tsuzuki.store.runs import moves
from tsuzuki.wiring.application import Application

TIMEOUT_SECONDS = 120


@dataclass(frozen=True, kw_only=True)
class Event:
    name: str
    data: Any
    id: str | None


class EventReader:
    """An open stream; `status` and `headers` are those of its answer."""

    def __init__(
        self,
        url: str,
        topics: str,
        *,
        token: str | None = "viewer",
        cookie: str | None = None,
        last_id: str | None = None,
        after: str | None = None,
    ) -> None:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        if cookie is not None:
            headers["Cookie"] = cookie
        if last_id is not None:
            headers["Last-Event-ID"] = last_id
        query = f"topics={quote(topics)}" + (f"&after={quote(after)}" if after is not None else "")
        self._connection = HTTPConnection(urlsplit(url).netloc, timeout=TIMEOUT_SECONDS)
        self._connection.request("GET", f"/api/v1/stream?{query}", headers=headers)
        self.answer: HTTPResponse = self._connection.getresponse()
        self.last_id = last_id
        if self.answer.status == 200:
            self.ready = self.read()
            assert self.ready is not None
            assert self.ready.name == "ready"

    @property
    def socket(self) -> socket.socket:
        assert self._connection.sock is not None
        return self._connection.sock

    def read(self) -> Event | None:
        """The next event; None when the stream has ended."""
        fields: dict[str, list[str]] = {}
        end = monotonic() + TIMEOUT_SECONDS
        while line := self.answer.readline().decode():
            assert monotonic() < end, "no event came"  # only the lines that keep it open
            if line != "\n":
                name, _, value = line.rstrip("\n").partition(": ")
                fields.setdefault(name, []).append(value)
                continue
            self.last_id = fields.get("id", [self.last_id])[-1]
            if "data" in fields:
                data = json.loads("\n".join(fields["data"]))
                return Event(name=fields["event"][-1], data=data, id=self.last_id)
            fields = {}
        return None

    def read_all(self) -> list[Event]:
        """Until the stream ends."""
        return list(iter(self.read, None))

    def events(self, name: str) -> Iterator[Event]:
        """The events of one name."""
        while (event := self.read()) is not None:
            if event.name == name:
                yield event

    def moves(self, count: int) -> list[tuple[int, int]]:
        """Wait for at least `count` further state changes of runs."""
        seen: list[tuple[int, int]] = []
        for event in self.events("runs"):
            seen += [(change["run_id"], change["version"]) for change in event.data["changes"]]
            if len(seen) >= count:
                break
        return seen

    def close(self) -> None:
        self.answer.close()
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        _kind: type[BaseException] | None,
        _problem: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self.close()


def waiting_runs(application: Application, count: int, job: str = "hello") -> list[int]:
    """Runs that wait, because no engine takes them."""
    wanted = [Request(job=job, delay_seconds=3600.0)] * count
    return [submission.run_id for submission in application.runs.submit_many(wanted)]


def cancel_all(database_url: str, run_ids: Sequence[int]) -> list[tuple[int, int]]:
    """Cancel runs in one transaction. Answers the moves."""
    refs = [RunRef(id=run_id, version=1) for run_id in run_ids]
    with opened(database_url) as database, database.write() as connection:
        assert len(moves.cancel(connection, operator="me", runs=refs)) == len(refs)
    return [(run_id, 2) for run_id in run_ids]
