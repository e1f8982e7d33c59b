"""Which requests of browsers are taken: by Host (DNS rebinding), and by where they come from (cross-site requests).

A browser sends cookies, and reaches loopback, for every page it shows. So an unsafe request must come from our own
origin, by `Sec-Fetch-Site` or else by `Origin`. A request with a bearer token and without a cookie is exempt: no
page of another site can make a browser send one.
"""

import re
from collections.abc import Collection
from typing import NoReturn

from starlette.datastructures import Headers

from tsuzuki.model.errors import NotPermitted
from tsuzuki.web.problems import RequestError

SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
LOOPBACK_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_HOST = re.compile(r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[^:\[\]/@]+))(?::[0-9]{1,5})?")
OUR_SITES = frozenset({"same-origin", "none"})


def host_name(host: str) -> str:
    """The name in a Host header, without its port and without the brackets of an IPv6 address; empty if it is no
    host."""
    found = _HOST.fullmatch(host.lower())
    return "" if found is None else found["address"] or found["name"].rstrip(".")


def check_host(headers: Headers, allowed: Collection[str]) -> None:
    """Refuse a name that is not ours: a page of another site may have rebound its name to this machine."""
    hosts = headers.getlist("host")
    if len(hosts) == 1 and host_name(hosts[0]) in allowed:
        return
    raise RequestError(
        "this server does not serve the name in the Host header",
        status=421,
        hint="Use the address it was started with, or restart it with --allow-host NAME.",
        code="host_unknown",
    )


def check_origin(
    method: str, headers: Headers, scheme: str, *, session_cookies: Collection[str]
) -> None:
    """Refuse a change that a page of another site makes a browser ask for. `session_cookies` are the names that the
    cookie of a session may have."""
    if method in SAFE_METHODS:
        return
    has_cookie = _has_any(session_cookies, headers)
    if "authorization" in headers and not has_cookie:
        return
    is_ours = _is_ours(headers, scheme)
    if is_ours is None:
        is_ours = not has_cookie  # no browser sends neither
    if not is_ours:
        _refuse("Send it from this server's own pages, or with a token and without a cookie.")


def check_no_other_site(headers: Headers, scheme: str) -> None:
    """Refuse every request that a page of another site sends, also one with a token."""
    if _is_ours(headers, scheme) is False:
        _refuse("Send it from a program, or from this server's own pages.")


def _is_ours(headers: Headers, scheme: str) -> bool | None:
    """Whether the page that sends it is ours; None if no page is named."""
    site, origin = headers.get("sec-fetch-site"), headers.get("origin")
    if site is not None and site not in OUR_SITES:
        return False
    if origin is not None and site is None:
        return origin.lower() == f"{scheme}://{headers.get('host', '')}".lower()
    return None if site is None else True


def _refuse(hint: str) -> NoReturn:
    raise NotPermitted("the request comes from another site", hint=hint, code="cross_site")


def _has_any(names: Collection[str], headers: Headers) -> bool:
    return any(
        part.partition("=")[0].strip() in names
        for header in headers.getlist("cookie")
        for part in header.split(";")
    )
