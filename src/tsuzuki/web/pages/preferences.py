"""What a person prefers: language, theme, time zone, single keys. Kept in a cookie, so the first paint is right.

A cookie that was changed by hand, or that an older version wrote, is read as far as it makes sense. The time zone of
the browser is in a cookie of its own, which our script writes.
"""

from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from urllib.parse import parse_qsl, unquote, urlencode
from zoneinfo import available_timezones

from starlette.requests import HTTPConnection
from starlette.responses import Response

from tsuzuki.web.pages.language import LANGUAGES, preferred_language

COOKIE = "__Host-tsuzuki-preferences"
ZONE_COOKIE = "__Host-tsuzuki-zone"
KEPT_SECONDS = 400 * 86_400
LENGTH_MAX = 300


class Theme(StrEnum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


@cache
def zone_names() -> tuple[str, ...]:
    """Those that name a place, and UTC."""
    places = (name for name in available_timezones() if "/" in name and not name.startswith("Etc/"))
    return ("UTC", *sorted(places))


@dataclass(frozen=True, kw_only=True)
class Preferences:
    """`language` and `zone` are None if the browser's are to be used. `browser_zone` is None until our script has run
    in this browser."""

    language: str | None = None
    theme: Theme = Theme.SYSTEM
    zone: str | None = None
    has_single_keys: bool = True
    browser_zone: str | None = None


def preferences_of(connection: HTTPConnection) -> Preferences:
    stored = connection.cookies.get(COOKIE, "")
    given = dict(parse_qsl(stored)) if len(stored) <= LENGTH_MAX else {}
    language, theme, zone = given.get("language"), given.get("theme"), given.get("zone")
    return Preferences(
        language=language if language in LANGUAGES else None,
        theme=Theme(theme) if theme in set(Theme) else Theme.SYSTEM,
        zone=zone if zone in zone_names() else None,
        has_single_keys=given.get("keys") != "off",
        browser_zone=_browser_zone(connection),
    )


def _browser_zone(connection: HTTPConnection) -> str | None:
    given = unquote(connection.cookies.get(ZONE_COOKIE, ""))
    return given if given in _known_zones() else None


@cache
def _known_zones() -> frozenset[str]:
    return frozenset(available_timezones())


def language_of(connection: HTTPConnection, preferences: Preferences) -> str:
    return preferences.language or preferred_language(connection.headers.get("accept-language", ""))


def keep_preferences(response: Response, preferences: Preferences) -> None:
    stored = {
        "language": preferences.language,
        "theme": preferences.theme.value,
        "zone": preferences.zone,
        "keys": None if preferences.has_single_keys else "off",
    }
    response.set_cookie(
        COOKIE,
        urlencode({name: value for name, value in stored.items() if value}),
        max_age=KEPT_SECONDS,
        secure=True,
        httponly=True,
        samesite="lax",
    )
