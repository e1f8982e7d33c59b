"""Logs credentials that were refused: one line for an address, then at most one in a minute with how many there were.

A program with an old token asks again and again, and an attacker more often than that; neither fills the log.
"""

from collections import OrderedDict
from dataclasses import dataclass

from starlette.requests import HTTPConnection

from tsuzuki.model.clock import Clock
from tsuzuki.services.server_log import log

INTERVAL_SECONDS = 60.0
ADDRESSES_MAX = 1_000


@dataclass
class _Refused:
    logged_at: float
    since_then: int = 0


class RefusalLog:
    """Of one server. Called from its event loop only."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._by_address: OrderedDict[str, _Refused] = OrderedDict()

    def note(self, address: str, kind: str) -> None:
        """A credential of a kind, such as `token`, was refused."""
        now = self._clock.monotonic()
        known = self._by_address.get(address)
        if known is not None and now - known.logged_at < INTERVAL_SECONDS:
            known.since_then += 1
            return
        more = {"before": known.since_then} if known and known.since_then else {}
        log.warning("credentials_refused", address=address, kind=kind, **more)
        self._by_address[address] = _Refused(now)
        self._by_address.move_to_end(address)
        if len(self._by_address) > ADDRESSES_MAX:
            self._by_address.popitem(last=False)


def note_refusal(connection: HTTPConnection, kind: str) -> None:
    """Log that a credential of this request was refused."""
    address = connection.client.host if connection.client else "unknown"
    connection.app.state.refusal_log.note(address, kind)
