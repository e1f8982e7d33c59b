"""A connection that is cut off if its client keeps it waiting: for a request, or until an answer is read.

A connection takes a file of the process, and the engine beside the server needs files too. So there is a limit for all
of them, of which one address has half at most, and each is looked at now and then: one that is where it was at the last
look is cut off. The answer of a stream can cut it off at once.
"""

import asyncio
import ipaddress
import resource
from typing import NamedTuple

from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

from tsuzuki.services.access.sign_in_limits import network_of
from tsuzuki.web.stream.response import ABORT

LOOK_SECONDS = 15.0
CONNECTIONS_MAX = 2_000


class _Standstill(NamedTuple):
    """What nothing but the client can move: the next request, or what is left to be written."""

    last_request: RequestResponseCycle | None
    left_bytes: int

    def goes_on_since(self, before: "_Standstill") -> bool:
        return self.last_request is before.last_request and self.left_bytes >= before.left_bytes


def connections_max() -> int:
    """How many connections a server keeps: with half of the files that the process may open, at most."""
    files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return CONNECTIONS_MAX if files == resource.RLIM_INFINITY else min(CONNECTIONS_MAX, files // 2)


class WatchedConnection(H11Protocol):
    _watched: asyncio.Transport
    _look_seconds: float
    _next_look: asyncio.TimerHandle
    _network: str
    """What its client has for itself: an IPv4 address, or a network of IPv6 addresses."""
    _standstill: _Standstill | None = None
    """At the last look; None if the client had nothing to do, or has done something since."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as the parent has it
        self._watched = transport
        self._look_seconds = LOOK_SECONDS
        self.app_state = {**self.app_state, ABORT: transport.abort}
        super().connection_made(transport)
        self._next_look = self.loop.call_later(self._look_seconds, self._look)
        self._network = network_of(self.client[0] if self.client else None)
        if self._is_one_too_many():
            transport.abort()

    def _is_one_too_many(self) -> bool:
        limit, there = connections_max(), self.connections
        of_one = (limit + 1) // 2
        if len(there) <= of_one:  # the usual case: nothing is counted
            return False
        same = sum(getattr(one, "_network", None) == self._network for one in there)
        return len(there) > limit or (same > of_one and not self._is_of_trusted_proxy())

    def _is_of_trusted_proxy(self) -> bool:
        """Whether it may carry the requests of many clients."""
        proxies = self.config.forwarded_allow_ips or ()
        if not self.config.proxy_headers or isinstance(proxies, str) or self.client is None:
            return False
        address = ipaddress.ip_address(self.client[0].partition("%")[0])
        return any(address in ipaddress.ip_network(proxy) for proxy in proxies)

    def connection_lost(self, exc: Exception | None) -> None:
        self._next_look.cancel()
        super().connection_lost(exc)

    def resume_writing(self) -> None:
        self._standstill = None
        super().resume_writing()

    def _look(self) -> None:
        before, now = self._standstill, self._now()
        if before is not None and now is not None and now.goes_on_since(before):
            self._watched.abort()
            return
        self._standstill = now
        self._next_look = self.loop.call_later(self._look_seconds, self._look)

    def _now(self) -> _Standstill | None:
        is_answering = self.cycle is not None and not self.cycle.response_complete
        if is_answering and not self.flow.write_paused:
            return None
        return _Standstill(self.cycle, self._watched.get_write_buffer_size())
