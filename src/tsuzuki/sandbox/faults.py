"""Faults on demand: which requests go wrong, how, and how often.

A fault waits for matching requests, lets `skip` of them pass, then spoils `times` of them and is
spent. Of several waiting faults the one added first takes a request.
"""

import re
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

LOGIN_PAGE = b"<!DOCTYPE html><html><head><title>Sign in</title></head><body>Sign in</body></html>"


class StandInFaultKind(StrEnum):
    """What happens to a spoiled request."""

    ANSWER = "answer"
    """`status`, `headers` and `body` are sent; the stand-in itself is not asked."""

    HTML = "html"
    """A page for people is sent with `status`, as a proxy or a sign-in wall does."""

    HANG = "hang"
    """Nothing is sent until the fault is released or the client is gone."""

    SLOW = "slow"
    """The true answer is sent after `seconds`."""

    DRIP = "drip"
    """The true answer is sent byte by byte from its first one, with `seconds` between two bytes."""

    CUT = "cut"
    """The true answer's head and the first half of its body are sent, then the connection ends."""

    RESET = "reset"
    """The connection is reset before anything is sent."""

    SHORT = "short"
    """The true answer is sent with only the first `rows` of its JSON list, and with `headers` besides its own."""

    SWAPPED = "swapped"
    """The true answer to the request with the parameters in `query` is sent, such as another page than the one
    asked for; with `headers` besides its own."""


@dataclass(frozen=True, kw_only=True)
class StandInFault:
    """One order for trouble.

    `path` may hold `*` for any text. It is compared with the path as sent (percent-encoded), or,
    if it holds a `?`, with path and query.
    """

    kind: StandInFaultKind = StandInFaultKind.ANSWER
    path: str = "*"
    method: str = "*"
    skip: int = 0
    times: int | None = 1
    """None: until the faults are cleared."""

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""
    content_type: str = "application/json"
    seconds: float = 0.0
    rows: int = 0
    query: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if min(self.skip, self.seconds, self.rows) < 0 or (
            self.times is not None and self.times < 1
        ):
            raise ValueError("skip, seconds and rows are not negative, times is at least 1")
        if not 100 <= self.status <= 599:
            raise ValueError("status is a number from 100 to 599")

    def concerns(self, method: str, target: str) -> bool:
        return self.method in ("*", method) and matches(self.path, target)


def matches(pattern: str, target: str) -> bool:
    """Whether a path with `*` in it names this target."""
    subject = target if "?" in pattern else target.partition("?")[0]
    return re.fullmatch(re.escape(pattern).replace(r"\*", ".*"), subject) is not None


@dataclass
class _Waiting:
    fault: StandInFault
    seen: int = 0
    spoiled: int = 0

    def take(self) -> bool:
        """Count a matching request; true if it is one to spoil."""
        self.seen += 1
        if self.seen <= self.fault.skip or self.spent:
            return False
        self.spoiled += 1
        return True

    @property
    def spent(self) -> bool:
        return self.fault.times is not None and self.spoiled >= self.fault.times


class Faults:
    """The faults that wait for requests, and the requests that are held by one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._released = threading.Event()
        self._held = 0

    def add(self, fault: StandInFault) -> None:
        with self._lock:
            self._waiting.append(_Waiting(fault))

    def clear(self) -> None:
        """Nothing goes wrong from now on; held requests are let go."""
        with self._lock:
            self._waiting.clear()
        self.release()

    def release(self) -> None:
        """Let go what is held now; it is then answered truly."""
        with self._lock:
            released, self._released = self._released, threading.Event()
        released.set()

    @property
    def waiting(self) -> list[StandInFault]:
        """Those that still wait for requests."""
        with self._lock:
            return [waiting.fault for waiting in self._waiting if not waiting.spent]

    @property
    def held(self) -> int:
        """How many requests hang, or are slow, at this moment."""
        with self._lock:
            return self._held

    def strike(self, method: str, target: str) -> StandInFault | None:
        """The fault that takes this request, if one does."""
        with self._lock:
            for waiting in self._waiting:
                if waiting.fault.concerns(method, target) and waiting.take():
                    return waiting.fault
        return None

    def begin_holding(self) -> threading.Event:
        """A request is held from now on; the event is set when it is let go."""
        with self._lock:
            self._held += 1
            return self._released

    def end_holding(self) -> None:
        with self._lock:
            self._held -= 1
