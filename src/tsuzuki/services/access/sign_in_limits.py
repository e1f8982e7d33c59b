"""Limits on sign-in attempts, by name and by address. The counts are stored and apply to all servers.

An attempt is counted before the password is checked. A name that does not exist is counted like any other. When an
address has no attempts left, names are no longer counted for it, because otherwise one client could store any
number of names.
"""

import ipaddress
from dataclasses import dataclass

from tsuzuki.model import credentials
from tsuzuki.model.errors import NotAuthenticated
from tsuzuki.store.access import sign_in_attempts
from tsuzuki.store.sql.database import Connection, Database

WINDOW_SECONDS = 900.0
BY_NAME_MAX = 10
BY_ADDRESS_MAX = 50
_IPV6_NETWORK_BITS = 64


@dataclass(frozen=True, kw_only=True)
class SignInKeys:
    """By what an attempt is counted: hashes of the name and of the address."""

    name: str
    address: str


def keys_of(name: str, address: str | None) -> SignInKeys:
    return SignInKeys(
        name=credentials.hash_of(f"name {name.casefold()}"),
        address=credentials.hash_of(f"address {network_of(address)}"),
    )


@dataclass(frozen=True, kw_only=True)
class Limited:
    """An attempt that is one too many. `error` is to be raised after the count is committed."""

    error: NotAuthenticated
    is_first: bool
    """Whether it is the first one after which attempts on the name, or from the address, are refused."""


def count_attempt(database: Database, connection: Connection, keys: SignInKeys) -> Limited | None:
    """Count an attempt. None if the password may be checked."""
    for key, limit in ((keys.address, BY_ADDRESS_MAX), (keys.name, BY_NAME_MAX)):
        attempts = sign_in_attempts.count(connection, key, window_seconds=WINDOW_SECONDS)
        if attempts.count > limit:
            left = attempts.window_ends_at - database.now(connection)
            return Limited(
                error=_limited(max(left.total_seconds(), 1.0)),
                is_first=attempts.count == limit + 1,
            )
        if attempts.count == 1:
            sign_in_attempts.delete_over(connection)
    return None


def note_success(connection: Connection, keys: SignInKeys) -> None:
    """The attempts on a name are forgotten. Those from an address are not: one account would clear the way to all."""
    # In the order in which they are counted, so that two sign-ins never wait for each other.
    sign_in_attempts.take_back(connection, keys.address)
    sign_in_attempts.forget(connection, keys.name)


def _limited(seconds: float) -> NotAuthenticated:
    minutes = max(round(seconds / 60), 1)
    return NotAuthenticated(
        "too many sign-in attempts",
        hint=f"Try again in {minutes} {'minute' if minutes == 1 else 'minutes'}.",
        retry_after_seconds=float(round(seconds)),
        code="sign_in_limited",
    )


def network_of(address: str | None) -> str:
    """What one client has: an IPv4 address, or a network of IPv6 addresses."""
    try:
        parsed = ipaddress.ip_address((address or "").partition("%")[0])
    except ValueError:
        return address or "unknown"
    if isinstance(parsed, ipaddress.IPv4Address):
        return str(parsed)
    if parsed.ipv4_mapped is not None:
        return str(parsed.ipv4_mapped)
    return str(ipaddress.ip_network((parsed, _IPV6_NETWORK_BITS), strict=False))
