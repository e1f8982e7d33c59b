"""URLs of downloads: parsed once, so that what is checked is what is asked for."""

import re
from collections.abc import Mapping

import httpx2

from tsuzuki.outward.errors import SourceRefused, SourceUnavailable
from tsuzuki.outward.public_address import literal_address

URL_CHARACTERS_MAX = 8_000
REDIRECTS = frozenset({301, 302, 303, 307, 308})
_PORTS = {"http": 80, "https": 443}
_NAME = re.compile(r"[a-z0-9_.-]{1,255}")


def checked_url(url: str) -> httpx2.URL:
    """A URL that may be asked for, without its fragment. Raises `SourceRefused`, without repeating it."""
    try:
        if len(url) > URL_CHARACTERS_MAX:
            raise _not_a_url(f"it has more than {URL_CHARACTERS_MAX} characters")
        parsed = httpx2.URL(url.strip())
        host = parsed.host
    except (httpx2.InvalidURL, ValueError):
        raise _not_a_url("it cannot be parsed") from None
    if parsed.scheme not in _PORTS:
        raise _not_a_url("only http and https are")
    if not host:
        raise _not_a_url("it names no host")
    # The library escapes what no host may have, and takes any number for a port.
    name = parsed.raw_host.decode("ascii")
    if not (_NAME.fullmatch(name) or literal_address(name)):
        raise _not_a_url("its host is not a name")
    if parsed.port is not None and not 0 < parsed.port < 65_536:
        raise _not_a_url("its port is not a number from 1 to 65535")
    if parsed.userinfo:
        raise _not_a_url("it contains a user name or password")
    return parsed.copy_with(fragment=None) if "#" in url else parsed


def redirect_target(url: httpx2.URL, status: int, headers: Mapping[str, str]) -> httpx2.URL | None:
    """Where a response leads, or None if it is no redirect."""
    if status not in REDIRECTS:
        return None
    location = headers.get("location")
    if not location:
        raise SourceUnavailable(f"{url.host} redirects to an empty address")
    try:
        return checked_url(str(url.join(location)))
    except (httpx2.InvalidURL, ValueError):
        raise _not_a_url("it cannot be parsed") from None


def is_downgrade(url: httpx2.URL, target: httpx2.URL) -> bool:
    return url.scheme == "https" and target.scheme == "http"


def keeps_secrets(url: httpx2.URL, target: httpx2.URL) -> bool:
    """Whether what is secret may go on to the target: the same origin, or the same host now encrypted."""
    if url.host != target.host:
        return False
    places = [(each.scheme, each.port or _PORTS[each.scheme]) for each in (url, target)]
    return places[0] == places[1] or places == [("http", 80), ("https", 443)]


def _not_a_url(why: str) -> SourceRefused:
    return SourceRefused(f"this address cannot be downloaded: {why}", code="url_refused")
