"""What the models of requests and answers share, and times as they are written in them."""

import re
from datetime import UTC, date, datetime
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from tsuzuki.model.sentence import Sentence

_DAY = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


def _keep_sentence(value: Any, validate: ValidatorFunctionWrapHandler) -> Any:
    return value if isinstance(value, Sentence) else validate(value)


SentenceText = Annotated[str, WrapValidator(_keep_sentence)]
"""A sentence for people. It stays a `Sentence`, so that a page can say it in another language."""


class Model(BaseModel):
    """What is sent and what is answered: fields that are not named are refused."""

    model_config = ConfigDict(extra="forbid")


def to_utc_text(moment: datetime) -> str:
    """Of fixed width, so that the order of texts is the order of times."""
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
    return f"{text}Z"


def _written_out(value: Any) -> Any:
    """A number would be taken for the seconds since 1970."""
    if isinstance(value, str) and _DAY.match(value):
        return value
    raise ValueError("write it in full, as in 2026-11-17T09:30:00Z or, for a day, 2026-11-17")


def _number(value: Any) -> Any:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise ValueError("it must be a number")  # noqa: TRY004 -- pydantic asks for a ValueError
    return value


def _in_utc(moment: datetime) -> datetime:
    """A time near the ends of the calendar may have no date in UTC."""
    try:
        return moment.astimezone(UTC)
    except OverflowError:
        raise ValueError("the time is out of range in UTC") from None


Moment = Annotated[datetime, PlainSerializer(to_utc_text, return_type=str, when_used="json")]
"""A time in UTC: `2026-11-17T09:30:00.000000Z`."""

GivenMoment = Annotated[
    AwareDatetime,
    BeforeValidator(_written_out),
    AfterValidator(_in_utc),
    PlainSerializer(to_utc_text, return_type=str, when_used="json"),
]
"""A time of a request: with a zone, and then in UTC."""

GivenDay = Annotated[date, BeforeValidator(_written_out)]
"""A day of a request: `2026-11-17`."""

IS_NUMBER = BeforeValidator(_number)
Integer = Annotated[int, IS_NUMBER]
Number = Annotated[float, IS_NUMBER]
Flag = Annotated[bool, Field(strict=True)]
"""Of a body, where a text is no number and `true` is not 1."""
