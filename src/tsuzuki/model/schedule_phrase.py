"""Schedule phrases: "every 10m", "daily at 07:00", "weekly on monday at 09:00".

A phrase is only another notation: it is translated into the mapping that means the same, and that is parsed
like any other.
"""

import re
from typing import Any

from tsuzuki.model.errors import ScheduleError
from tsuzuki.model.suggestion import did_you_mean

EXAMPLES = {
    "every": "every 10m",
    "daily": "daily at 07:00",
    "hourly": "hourly at :15",
    "weekdays": "weekdays at 09:00",
    "weekly": "weekly on monday at 09:00",
}

_PHRASE = re.compile(
    r"every (?P<one>second|minute|hour|day)"
    r"|every (?P<every>[0-9].*)"
    r"|daily at (?P<daily_at>.+)"
    r"|hourly at (?P<hourly_at_minute>:[0-9]{1,2}(?:(?:,| and) ?:[0-9]{1,2})*)"
    r"|weekdays at (?P<weekdays_at>.+)"
    r"|weekly on (?P<days>.+) at (?P<at>.+)"
)
_SEPARATOR = re.compile(r"\s*,\s*(?:and\s+)?|\s+and\s+")


def mapping_of_phrase(text: str) -> dict[str, Any]:
    """The mapping that a phrase or a bare cron expression stands for. Times in it are parsed later."""
    words = " ".join(text.lower().split())
    if words[:1] in {"@", "*"} or words[:1].isdecimal():
        return {"cron": text}
    match = _PHRASE.fullmatch(words)
    if match is None:
        raise _unknown_phrase(text, words)
    parts = {name: value for name, value in match.groupdict().items() if value is not None}
    return _mapping_of(parts)


def _mapping_of(parts: dict[str, str]) -> dict[str, Any]:
    match parts:
        case {"one": unit}:
            return {"every": f"1 {unit}"}
        case {"every": interval}:
            return {"every": interval}
        case {"hourly_at_minute": minutes}:
            return {"hourly_at_minute": [int(one.strip(":")) for one in _SEPARATOR.split(minutes)]}
        case {"days": days, "at": times}:
            return {"weekly": {"days": _SEPARATOR.split(days), "at": _SEPARATOR.split(times)}}
        case _:
            return {name: _SEPARATOR.split(times) for name, times in parts.items()}


def _unknown_phrase(text: str, words: str) -> ScheduleError:
    first = words.partition(" ")[0]
    question = "" if first in EXAMPLES else did_you_mean(first, EXAMPLES)
    examples = ", ".join(f'"{example}"' for example in EXAMPLES.values())
    return ScheduleError(
        f"cannot parse the schedule {text!r}",
        hint=f'{question}Use {examples} or a cron expression "*/5 * * * *".',
    )
