"""Parameter types for JSON, `key=value`, durations and times."""

import json
import math
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from typing import Any

import click

from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import ConfigurationError, UsageError
from tsuzuki.model.schedule_words import read_interval

STORED_ID_MAX = 2**63 - 1


class JsonParameter(click.ParamType[Any]):
    """Any JSON value."""

    name = "json"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        del param, ctx
        if not isinstance(value, str):
            return value
        try:
            return json.loads(value)
        except (ValueError, RecursionError) as problem:
            raise UsageError(
                f"invalid JSON: {problem}",
                hint='Quote it for the shell, such as \'{"key": "value"}\'.',
                code="not_json",
            ) from None


class StoredId(click.IntRange):
    """A number that the database gave: 64 bits, as its columns hold."""

    def __init__(self, min: int = 1) -> None:  # noqa: A002 - as its parent says it
        super().__init__(min, STORED_ID_MAX)


class RunNumber(StoredId):
    """The number of a run."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        try:
            return super().convert(value, param, ctx)
        except click.BadParameter:
            raise UsageError(f"{value!r} is not a run number", hint="See: tsuzuki run ls") from None


class Duration(click.ParamType[float]):
    """Seconds, from text like `90d` or `1h30m`."""

    name = "duration"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        del param, ctx
        if not isinstance(value, str):
            return float(value)
        try:
            return read_interval(value).total_seconds()
        except (ConfigurationError, OverflowError):
            raise UsageError(
                f"{value!r} is not a duration", hint="For example: 90d, 12h, 1h30m", code="duration"
            ) from None


class PastMoment(click.ParamType[datetime]):
    """A moment: how long ago, such as `24h`, or a date with or without a time, in UTC unless it names a zone."""

    name = "moment"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> datetime:
        if isinstance(value, datetime):
            return value
        with suppress(ValueError):
            moment = datetime.fromisoformat(value)
            return moment.replace(tzinfo=moment.tzinfo or UTC)
        try:
            return SystemClock().now() - timedelta(seconds=Duration().convert(value, param, ctx))
        except (UsageError, OverflowError):
            raise UsageError(
                f"{value!r} is neither a date nor a duration",
                hint="For example: 24h, 7d, 2026-11-18 or 2026-11-18T06:30",
                code="moment",
            ) from None


since_option = click.option(
    "--since",
    type=PastMoment(),
    metavar="WHEN",
    help="Start of the time range: 24h, 7d, 2026-11-18 or 2026-11-18T06:30 (UTC).",
)
until_option = click.option(
    "--until",
    type=PastMoment(),
    metavar="WHEN",
    help="End of the time range (exclusive), written like --since.",
)


class Seconds(Duration):
    """The same, or a number of seconds without a unit."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        with suppress(ValueError):
            seconds = float(value)
            if 0 <= seconds < math.inf:
                return seconds
        return super().convert(value, param, ctx)


timeout_option = click.option(
    "--timeout",
    type=Seconds(),
    metavar="SECONDS",
    help="Stop waiting after this time (exit code 124).",
)


def arguments_of(whole: Any, pairs: tuple[str, ...]) -> dict[str, Any]:
    """The arguments of a run: a JSON object, and `key=value` pairs over it. A value that is JSON is
    taken as such, anything else as text."""
    if not isinstance(whole, dict):
        raise UsageError("the arguments must be a JSON object", hint="For example: '{\"n\": 1}'")
    arguments = dict(whole)
    for pair in pairs:
        key, separator, text = pair.partition("=")
        if not separator or not key:
            raise UsageError(f"{pair!r} is not key=value", hint="For example: --arg folder=/tmp")
        try:
            arguments[key] = json.loads(text)
        except (ValueError, RecursionError):
            arguments[key] = text
    return arguments
