"""Schedules, intervals and months in the words of the viewer's language. English has the words of the service for
a schedule."""

import re
from collections.abc import Mapping
from datetime import date
from typing import Any

from babel.dates import get_day_names, get_month_names
from babel.units import format_unit
from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup

from tsuzuki.model.timetable import Weekday
from tsuzuki.model.visible_text import neutralise
from tsuzuki.web.pages.language import DEFAULT_LANGUAGE, message, translations

_AMOUNT = re.compile(r"([0-9.]+)([smhd])")
_UNITS = {"s": "second", "m": "minute", "h": "hour", "d": "day"}
_LENGTHS = {"day": 86_400, "hour": 3600, "minute": 60, "second": 1}
_EVERY = message("every %(interval)s")
_DAILY = message("every day at %(times)s")
_WEEKDAYS = message("weekdays at %(times)s")
_WEEKLY = message("%(days)s at %(times)s")
_HOURLY = message("hourly at minute %(minutes)s")
_ON_EVENT = message("on event %(event)s")
_BY_HAND = message("manual")


@pass_context
def schedule_text(context: Context, job: Any) -> Markup:
    """When a job runs: by its schedule, on an event, or by hand."""
    language = context["viewer"].language
    if language == DEFAULT_LANGUAGE:
        return _outside(job.schedule_words)
    gettext = translations(language).gettext
    parts: list[Markup] = []
    if job.schedule:
        parts.append(_words(job.schedule, language))
    if job.on_event:
        parts.append(Markup.escape(gettext(_ON_EVENT)) % {"event": _outside(job.on_event)})
    return Markup(" / ").join(parts) or Markup.escape(gettext(_BY_HAND))


@pass_context
def interval(context: Context, seconds: float) -> str:
    """About how long, in its largest unit that counts and the next one."""
    language, left = context["viewer"].language, round(seconds)
    counts = []
    for unit, length in _LENGTHS.items():
        count, left = divmod(left, length)
        counts.append((unit, count))
    first = next((at for at, (_, count) in enumerate(counts) if count), len(counts) - 1)
    shown = [pair for pair in counts[first : first + 2] if pair[1]] or counts[-1:]
    text = " ".join(
        format_unit(count, f"duration-{unit}", "short", locale=language) for unit, count in shown
    )
    return re.sub(r"\b(sec|hr)\b", lambda found: found[0][0], text)


@pass_context
def month_name(context: Context, day: date) -> str:
    return str(get_month_names("abbreviated", locale=context["viewer"].language)[day.month])


def _words(schedule: Mapping[str, Any], language: str) -> Markup:
    gettext = translations(language).gettext
    zone = _outside(schedule["timezone"]) if "timezone" in schedule else None
    match schedule:
        case {"every": interval}:
            return Markup.escape(gettext(_EVERY) % {"interval": _interval(interval, language)})
        case {"daily_at": times}:
            text = gettext(_DAILY) % {"times": _listed(times)}
        case {"weekdays_at": times}:
            text = gettext(_WEEKDAYS) % {"times": _listed(times)}
        case {"weekly": {"at": times} as weekly}:
            named = _days(weekly, language)
            text = gettext(_WEEKLY) % {"days": named, "times": _listed(times)}
        case {"hourly_at_minute": minutes}:
            text = gettext(_HOURLY) % {"minutes": _listed(minutes)}
        case {"cron": expression}:
            return Markup("{} ({})").format(_outside(expression), zone or "UTC")
        case _:
            return _outside(dict(schedule))
    return Markup("{} ({})").format(text, zone or "UTC")


def _outside(text: object) -> Markup:
    return Markup('<bdi translate="no">{}</bdi>').format(neutralise(str(text)))


def _interval(interval: object, language: str) -> str:
    """`1h30m`, or a number of seconds."""
    text = interval if isinstance(interval, str) else f"{interval}s"
    return " ".join(
        format_unit(float(count), f"duration-{_UNITS[unit]}", "short", locale=language)
        for count, unit in _AMOUNT.findall(text)
    )


def _days(weekly: Mapping[Any, Any], language: str) -> str:
    names = weekly.get("days") or [weekly["day"]]
    words = get_day_names("wide", locale=language)
    return "\N{MIDDLE DOT}".join(words[Weekday[name.upper()].value] for name in names)


def _listed(values: object) -> str:
    return ", ".join(map(str, values)) if isinstance(values, list | tuple) else str(values)
