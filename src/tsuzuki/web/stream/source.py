"""Where events come from: each source has positions, and tells what came between two of them.

Moves of runs and lines of a log are a sequence: nothing of it is missed. All else is a state: what is told
is the state that is newer than the known one, and its position is a digest of it.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from tsuzuki.model import jsontext
from tsuzuki.model.errors import NotFound
from tsuzuki.services.changes import PositionLost
from tsuzuki.services.logs import LogLine
from tsuzuki.web.answers import to_utc_text
from tsuzuki.web.stream.state_topic import State, collector_topics
from tsuzuki.web.stream.topics import StreamEventKind, StreamSelection
from tsuzuki.wiring.application import Application

STATES_KEPT = 8
LOG_PAGE_LINES = 200
LOG_PAGE_CHARACTERS = 64 * 1024
"""What one event has at most, but for a line that is longer."""
ENDED = "!"
"""Behind the number of the last line of a log to which none will be added."""


@dataclass(frozen=True, kw_only=True)
class StreamStep:
    """Something new, and the position behind it."""

    position: str
    data: Any


@dataclass(frozen=True, kw_only=True)
class StateChange:
    """What differs from the known state; `is_whole`: everything there is, because no state was known."""

    changed: tuple[Mapping[str, Any], ...]
    gone: tuple[str, ...]
    is_whole: bool


@dataclass(frozen=True, kw_only=True)
class NewLines:
    """Lines of a log; `ended`: there will be no more."""

    run_id: int
    lines: tuple[LogLine, ...]
    ended: bool


class StreamSource(Protocol):
    """Called in threads, never on the event loop."""

    def now(self) -> str:
        """The position behind everything there is."""

    def between(self, known: str, until: str) -> Iterator[StreamStep]:
        """What came after `known`, up to `until`. Raises `PositionLost`."""

    def first(self, now: str) -> str:
        """The position from which a reader without one starts."""


class RunMoves:
    """Its steps have lists of `Change`."""

    def __init__(self, application: Application) -> None:
        self._changes = application.changes

    def now(self) -> str:
        return str(self._changes.now())

    def first(self, now: str) -> str:
        return now

    def between(self, known: str, until: str) -> Iterator[StreamStep]:
        changes = self._changes
        for page in changes.between(changes.known(known), changes.known(until)):
            yield StreamStep(position=str(page.position), data=page.changes)


class LogOfRun:
    """Its steps have `NewLines`."""

    def __init__(self, application: Application, run_id: int) -> None:
        self._logs = application.logs
        self._runs = application.runs
        self._run_id = run_id
        self._end: str | None = None

    def now(self) -> str:
        if self._end is not None:
            return self._end
        # In this order: the last lines are written with the end of the run.
        ended = self._run_id not in self._runs.live([self._run_id])
        last = self._logs.tail(self._run_id, 1)
        seq = last[-1].seq if last else 0
        if ended:
            self._end = f"{seq}{ENDED}"
        return self._end or str(seq)

    def first(self, now: str) -> str:
        return now

    def between(self, known: str, until: str) -> Iterator[StreamStep]:
        seq, last = _line(known), _line(until)
        if seq > last:
            raise PositionLost(known)
        has_ended = until.endswith(ENDED)
        while known != until:
            lines = self._read(seq, last)
            seq = lines[-1].seq if lines else last
            known = until if seq >= last else str(seq)
            new = NewLines(run_id=self._run_id, lines=lines, ended=has_ended and known == until)
            yield StreamStep(position=known, data=new)

    def _read(self, seq: int, last: int) -> tuple[LogLine, ...]:
        if seq == last:
            return ()
        try:
            lines = self._logs.read(self._run_id, after_seq=seq, limit=LOG_PAGE_LINES)
        except NotFound as problem:
            raise PositionLost(str(seq)) from problem
        return tuple(_first_characters(line for line in lines if line.seq <= last))


def _first_characters(lines: Iterable[LogLine]) -> Iterator[LogLine]:
    taken = 0
    for line in lines:
        taken += len(line.body)
        if taken > LOG_PAGE_CHARACTERS and taken > len(line.body):
            return
        yield line


def _line(position: str) -> int:
    text = position.removesuffix(ENDED)
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise PositionLost(position)
    return int(text)


class CurrentState:
    """Its steps have `StateChange`. `read` answers what there is now. If that is only the newest part, nothing is said
    about what is missing in it, and `is_overrun` says of two states whether more may have changed than they show."""

    def __init__(
        self, read: Callable[[], State], *, is_overrun: Callable[[State, State], bool] | None = None
    ) -> None:
        self._read = read
        self._is_overrun = is_overrun
        self._kept: dict[str, State] = {}

    def now(self) -> str:
        state = self._read()
        text = jsontext.encode(sorted(state.items())).encode("utf-8", "replace")
        digest = hashlib.sha256(text).hexdigest()[:16]
        kept = {name: known for name, known in self._kept.items() if name != digest}
        self._kept = dict([*kept.items(), (digest, state)][-STATES_KEPT:])
        return digest

    def first(self, now: str) -> str:  # noqa: ARG002 -- the whole state comes first, at any position
        return ""

    def between(self, known: str, until: str) -> Iterator[StreamStep]:
        if known == until:
            return
        kept = self._kept
        before, after = kept.get(known), kept.get(until)
        if after is None or (self._is_overrun and before and self._is_overrun(before, after)):
            raise PositionLost(until)
        changed = (
            value for name, value in after.items() if before is None or before.get(name) != value
        )
        yield StreamStep(
            position=until,
            data=StateChange(
                changed=tuple(changed),
                gone=()
                if self._is_overrun
                else tuple(name for name in before or () if name not in after),
                is_whole=before is None,
            ),
        )


def source_of(application: Application, selection: StreamSelection) -> StreamSource:
    match selection.kind:
        case StreamEventKind.RUNS:
            return RunMoves(application)
        case StreamEventKind.LOGS if selection.run_id is not None:
            return LogOfRun(application, selection.run_id)
        case StreamEventKind.PROGRESS:
            return CurrentState(lambda: _progress(application))
        case StreamEventKind.CREATED:
            return CurrentState(lambda: _newest(application))
        case StreamEventKind.WORKERS:
            return CurrentState(lambda: _workers(application))
        case name:
            topic = collector_topics()[name]
            return CurrentState(lambda: topic.read(application), is_overrun=topic.is_overrun)


def _newest(application: Application) -> dict[str, dict[str, Any]]:
    return {"newest": {"run_id": application.changes.newest_run_id()}}


def _progress(application: Application) -> dict[str, dict[str, Any]]:
    return {
        str(run.run_id): {**run._asdict(), "at": to_utc_text(run.at)}
        for run in application.changes.progress()
    }


_TIMES = ("started_at", "drain_ordered_at")
_UNSTEADY = ("heartbeat_at", "silent_seconds")
"""What changes all the time, and says nothing by itself."""


def _workers(application: Application) -> dict[str, dict[str, Any]]:
    found = {}
    for view in application.workers.workers():
        values = {name: value for name, value in view.as_dict().items() if name not in _UNSTEADY}
        times = {
            name: None if values[name] is None else to_utc_text(values[name]) for name in _TIMES
        }
        found[view.worker.id] = {**values, **times}
    return found
