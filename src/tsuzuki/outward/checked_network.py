"""A network that connects to public addresses only.

A name is resolved once per connection. Every address of the answer is checked, and the connection is made to a
checked address, not to the name: an answer that changes afterwards changes nothing. The host in the request and in
TLS stays the name.
"""

import socket
from collections.abc import Callable, Collection, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import Any

import httpcore2
import httpx2

from tsuzuki.outward.deadline import ExchangeDeadline
from tsuzuki.outward.errors import SourceFailed, SourceRefused, SourceUnavailable
from tsuzuki.outward.public_address import literal_address, why_not_public

ADDRESSES_TRIED_MAX = 4

Resolve = Callable[[str, int], Sequence[str]]
"""The addresses of a host, best first. Raises `OSError` if there are none."""


class AddressRefused(SourceRefused):
    """The host is at an address that is not public."""

    code = "address_refused"


def system_resolve(host: str, port: int) -> list[str]:
    """The addresses that the system's resolver gives."""
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def plain_host(host: str) -> str:
    """A host as it is compared: lower case, in ASCII, without brackets and without the last dot."""
    plain = host.strip().strip("[]").rstrip(".").lower()
    return plain if plain.isascii() else httpx2.URL(f"http://{plain}/").raw_host.decode("ascii")


class CheckedNetwork(httpcore2.NetworkBackend):
    """Connects to public addresses, and to any address of `private_hosts`."""

    def __init__(
        self,
        network: httpcore2.NetworkBackend,
        *,
        deadline: ExchangeDeadline,
        private_hosts: Collection[str],
        resolve: Resolve,
    ) -> None:
        self._network = network
        self._deadline = deadline
        self._private_hosts = frozenset(map(plain_host, private_hosts))
        self._resolve = resolve

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Any = None,
    ) -> httpcore2.NetworkStream:
        problem: Exception = httpcore2.ConnectError("no address")
        for address in self._checked_addresses(host, port, timeout)[:ADDRESSES_TRIED_MAX]:
            try:
                return self._network.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as failed:
                problem = failed
        raise problem

    def _checked_addresses(self, host: str, port: int, timeout: float | None) -> Sequence[str]:
        is_literal = literal_address(host) is not None
        addresses = [host] if is_literal else self._resolved(host, port, timeout)
        if plain_host(host) not in self._private_hosts:
            for address in addresses:
                if kind := why_not_public(address):
                    raise AddressRefused(
                        f"{host} is not on the public internet: its address is {kind}",
                        hint=f"If this host is yours, add it to `private_hosts`: {plain_host(host)}",
                    )
        return addresses

    def _resolved(self, host: str, port: int, timeout: float | None) -> Sequence[str]:
        """The addresses of a name, in time. The system's resolver takes no timeout, so a thread waits for it."""
        answers: SimpleQueue[Sequence[str] | SourceFailed] = SimpleQueue()
        Thread(
            target=lambda: answers.put(self._answer(host, port)), name="resolver", daemon=True
        ).start()
        try:
            answer = answers.get(timeout=self._deadline.left(timeout, httpcore2.ConnectTimeout))
        except Empty:
            raise SourceUnavailable(f"resolving the name {host} timed out") from None
        if isinstance(answer, SourceFailed):
            raise answer
        return answer

    def _answer(self, host: str, port: int) -> Sequence[str] | SourceFailed:
        try:
            addresses = self._resolve(host, port)
        except UnicodeError:
            return SourceRefused(f"{host[:100]} is not a host name")
        except OSError:
            return SourceUnavailable(f"cannot resolve the name {host}")
        return addresses or SourceUnavailable(f"the name {host} has no address")
