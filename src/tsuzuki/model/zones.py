"""Time zones by IANA name. The error for an unknown name suggests a similar one."""

from functools import lru_cache
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError, available_timezones

from tsuzuki.model.errors import ScheduleError
from tsuzuki.model.suggestion import closest

_NAMES_MAX = 1024
_ABBREVIATION_LENGTH_MAX = 4


# The standard library caches only the eight zones used last; a ninth would be read from its file again on
# every call.
@lru_cache(maxsize=_NAMES_MAX)
def zone_named(name: str) -> ZoneInfo:
    """The zone of that name, as the IANA database spells it."""
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleError(
            f"unknown time zone {name!r}", hint=_hint(name), code="timezone"
        ) from error


def _hint(name: str) -> str:
    similar = _similar(name.strip().replace(" ", "_"))
    question = f'Did you mean "{similar}"? ' if similar else ""
    return f"{question}Use a name such as Europe/Berlin, Asia/Tokyo or UTC."


def _similar(name: str) -> str | None:
    known = sorted(available_timezones())
    if len(name) <= _ABBREVIATION_LENGTH_MAX:
        # All abbreviations look similar: JST is not a misspelt MST.
        return next((zone for zone in known if zone.casefold() == name.casefold()), None)
    by_city = {zone.rsplit("/", 1)[-1]: zone for zone in known if "/" in zone}
    city = closest(name, by_city)
    return closest(name, known) or (by_city[city] if city else None)
