"""Times, durations and numbers as the viewer reads them. Each time has its zone, and others in its tooltip."""

import json
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import cache, lru_cache
from typing import Any
from zoneinfo import ZoneInfo

from babel.dates import TIMEDELTA_UNITS, format_timedelta
from babel.numbers import format_decimal
from jinja2 import pass_context
from jinja2.runtime import Context
from markupsafe import Markup, escape

from tsuzuki.model.sentence import CommandLine, Sentence
from tsuzuki.model.states import RunState
from tsuzuki.model.visible_text import neutralise
from tsuzuki.web.answers import to_utc_text
from tsuzuki.web.pages.ansi import without_ansi
from tsuzuki.web.pages.error_texts import translated_text
from tsuzuki.web.pages.language import message, translations
from tsuzuki.web.pages.schedule_text import interval, month_name, schedule_text
from tsuzuki.web.pages.viewer import Viewer
from tsuzuki.web.pages.words import OUTCOMES, REASONS, STATES
from tsuzuki.web.paging import Count

NONE = "\N{EN DASH}"
SIZE_UNITS = ("B", "KiB", "MiB", "GiB", "TiB")
JUST_NOW_SECONDS = 5
"""What is no longer ago than this is told as just now."""
_JUST_NOW = message("just now")
SYMBOLS = {"sec.": "s", "min.": "min", "hr.": "h"}
"""The units that durations have, in place of English abbreviations."""
_RUN = message("Run %(id)s")
_SECONDS = message("%(seconds)s s")
_MINUTES = message("%(minutes)s min %(seconds)s s")
_HOURS = message("%(hours)s h %(minutes)s min")
_DAYS = message("%(days)s d %(hours)s h")


def _viewer(context: Context) -> Viewer:
    viewer = context["viewer"]
    if not isinstance(viewer, Viewer):
        raise TypeError(type(viewer))
    return viewer


def in_zone(moment: datetime, zone: ZoneInfo) -> str:
    return moment.astimezone(zone).strftime("%Y-%m-%d %H:%M:%S %Z")


def _tooltip(viewer: Viewer, moment: datetime, schedule_zone: str | None) -> str:
    """In the zones of the schedule, of the viewer and of the browser, and in UTC; each once."""
    names = [viewer.zone.key, viewer.preferences.browser_zone or "UTC", "UTC"]
    if schedule_zone:
        names.insert(0, schedule_zone)
    return "\n".join(
        f"{in_zone(moment, ZoneInfo(name))} ({name})" for name in dict.fromkeys(names)
    ).replace(" UTC (UTC)", " UTC")


@pass_context
def moment(context: Context, value: datetime | None, schedule_zone: str | None = None) -> Markup:
    """A time with its zone."""
    if value is None:
        return Markup.escape(NONE)
    viewer = _viewer(context)
    return _time(value, _tooltip(viewer, value, schedule_zone), "", in_zone(value, viewer.zone))


@pass_context
def local_time(context: Context, value: datetime | str | None) -> str:
    """A time on the viewer's clock, for a field of a form."""
    if value is None:
        return ""
    at = datetime.fromisoformat(value) if isinstance(value, str) else value
    return at.astimezone(_viewer(context).zone).strftime("%Y-%m-%dT%H:%M")


@pass_context
def time_text(context: Context, value: datetime | str) -> Markup:
    """A time that a filter holds, as `moment` tells it."""
    return moment(context, datetime.fromisoformat(value) if isinstance(value, str) else value)


@pass_context
def ago(context: Context, value: datetime | None, schedule_zone: str | None = None) -> Markup:
    """How long ago, or in how long; our script keeps it current."""
    if value is None:
        return Markup.escape(NONE)
    viewer = _viewer(context)
    shown = relative(value - viewer.now, viewer.language)
    return _time(value, _tooltip(viewer, value, schedule_zone), " data-relative", shown)


def _time(value: datetime, title: str, mark: str, shown: str) -> Markup:
    return Markup(  # noqa: S704 - made of dates, names of zones and words of the language
        f'<time datetime="{to_utc_text(value)}" title="{title}"{mark}>{shown}</time>'
    )


def relative(distance: timedelta, language: str) -> str:
    """In whole units of the largest kind that fits, as in 1 min for 85 seconds."""
    seconds = int(distance.total_seconds())
    if -JUST_NOW_SECONDS < seconds <= 0:
        return _translations_of(language)(_JUST_NOW)
    unit, length = next(
        (one for one in TIMEDELTA_UNITS if abs(seconds) >= one[1]), TIMEDELTA_UNITS[-1]
    )
    count = abs(seconds) // length
    return _relative(count * length if seconds >= 0 else -count * length, unit, language)


@lru_cache(maxsize=10_000)
def _relative(seconds: int, unit: Any, language: str) -> str:
    """In this unit of Babel; of all times that have the same whole number of it."""
    text = format_timedelta(
        seconds,
        granularity=unit,
        threshold=math.inf,
        add_direction=True,
        format="short",
        locale=language,
    )
    return re.sub("sec[.]|min[.]|hr[.]", lambda found: SYMBOLS[found[0]], text)


@pass_context
def duration(context: Context, value: timedelta | float | None) -> str:
    if value is None:
        return NONE
    seconds = value.total_seconds() if isinstance(value, timedelta) else value
    return _duration(seconds, _translations_of(_viewer(context).language))


def _duration(seconds: float, gettext: Callable[[str], str]) -> str:
    if seconds < 60:
        return gettext(_SECONDS) % {"seconds": _seconds_text(seconds)}
    whole = round(seconds)
    if whole < 3600:
        return gettext(_MINUTES) % {"minutes": whole // 60, "seconds": whole % 60}
    if whole < 2 * 86_400:
        return gettext(_HOURS) % {"hours": whole // 3600, "minutes": whole % 3600 // 60}
    return gettext(_DAYS) % {"days": whole // 86_400, "hours": whole % 86_400 // 3600}


def _seconds_text(seconds: float) -> str:
    """As many digits as tell something: 0.004, 0.4, 4.0, 40; and 0 for less than half a millisecond."""
    if seconds < 0.0005:
        return "0"
    if seconds < 0.1:
        return f"{seconds:.3f}"
    return f"{seconds:.1f}" if seconds < 9.95 else f"{seconds:.0f}"


@pass_context
def number(context: Context, value: float | None) -> str:
    return NONE if value is None else number_text(value, _viewer(context).language)


@lru_cache(maxsize=10_000, typed=True)
def number_text(value: float, language: str) -> str:
    """A number as a language writes it."""
    return format_decimal(value, locale=language)


@pass_context
def size(context: Context, value: int) -> str:
    """Bytes in the largest unit that fits, as in 10 MiB."""
    amount, unit = float(value), SIZE_UNITS[0]
    for larger in SIZE_UNITS[1:]:
        if amount < 1024:
            break
        amount, unit = amount / 1024, larger
    return f"{number(context, round(amount, 1) if amount % 1 else int(amount))} {unit}"


@pass_context
def count(context: Context, value: Count | None) -> str:
    """`1,240`, or `10,000+` where counting stopped."""
    if value is None:
        return NONE
    return number(context, value.value) + ("" if value.exact else "+")


def outside(value: object) -> Markup:
    """Text that comes from elsewhere: not translated, and without harm to what stands beside it."""
    shown = escape(plain(value))
    return Markup(f'<bdi translate="no">{shown}</bdi>')  # noqa: S704 - escaped the line before


def plain(value: object) -> str:
    """Outside text for an attribute or the title of a drawing, where no element can stand. Its lines stay lines."""
    return "\n".join(map(neutralise, str(value).split("\n")))


def indented_json(value: Any) -> str:
    """Over several lines, without harm to what stands beside it."""
    text = json.dumps(value, indent=2, ensure_ascii=False, default=str)
    return "\n".join(neutralise(line) for line in text.split("\n"))


@pass_context
def translated(context: Context, value: str | None) -> Markup | None:
    """The text of an error in the language of the page; None if it stays English."""
    return translated_text(_viewer(context).language, value or "", outside)


@pass_context
def told(context: Context, value: str, length: int | None = None) -> Markup:
    """A sentence of a service or the text of an error, in the language of the page; any other text is English, and
    is cut at `length`."""
    if not isinstance(value, Sentence):
        shown = value if length is None or len(value) <= length else f"{value[: length - 1]}…"
        return translated(context, value) or Markup('<span lang="en">{}</span>').format(
            outside(shown)
        )
    gettext = _translations_of(_viewer(context).language)
    template = Markup(gettext(value.template))  # noqa: S704 - a message of ours; values are escaped
    return template % {name: _told_value(context, one) for name, one in value.values.items()}


def _told_value(context: Context, value: Any) -> Markup:
    if isinstance(value, tuple):
        return Markup(", ").join(_told_value(context, one) for one in value)
    if isinstance(value, Sentence):
        return told(context, value)
    if value is None or isinstance(value, datetime):
        return moment(context, value)
    if isinstance(value, CommandLine):
        return Markup('<code translate="no">{}</code>').format(neutralise(value))
    word = STATES[value].text if isinstance(value, RunState) else REASONS.get(value)
    gettext = _translations_of(_viewer(context).language)
    if word is not None:
        return Markup.escape(gettext(word))
    return (translated(context, value) if " " in str(value) else None) or outside(value)


@pass_context
def run_label(context: Context, run: Any) -> str:
    """A run as the label of a mark: a page has a thousand of them, so no macro makes it."""
    gettext = _translations_of(_viewer(context).language)
    parts = [gettext(OUTCOMES[run.outcome].text)]
    if run.seconds is not None:
        parts.append(_duration(run.seconds, gettext))
    if run.reason:
        parts.append(gettext(REASONS[run.reason]))
    parts.append(utc(run.finished_at))
    return f"{gettext(_RUN) % {'id': run.id}}: {', '.join(parts)}"


@cache
def _translations_of(language: str) -> Callable[[str], str]:
    return cache(translations(language).gettext)


def utc(value: datetime) -> str:
    return f"{value.astimezone(UTC).replace(tzinfo=None).isoformat(timespec='seconds')}Z"


FILTERS: dict[str, Callable[..., Any]] = {
    "moment": moment,
    "time_text": time_text,
    "local_time": local_time,
    "ago": ago,
    "duration": duration,
    "number": number,
    "size": size,
    "count_text": count,
    "outside": outside,
    "plain": plain,
    "indented_json": indented_json,
    "utc": utc,
    "without_ansi": without_ansi,
    "run_label": run_label,
    "told": told,
    "translated": translated,
    "schedule_text": schedule_text,
    "interval": interval,
    "month_name": month_name,
}
