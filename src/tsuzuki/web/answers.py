"""What the models of requests and answers share, and times as they are written in them."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import AfterValidator, AwareDatetime, BaseModel, ConfigDict, PlainSerializer


class Model(BaseModel):
    """What is sent and what is answered: fields that are not named are refused."""

    model_config = ConfigDict(extra="forbid")


def to_utc_text(moment: datetime) -> str:
    """Of fixed width, so that the order of texts is the order of times."""
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
    return f"{text}Z"


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
    AfterValidator(_in_utc),
    PlainSerializer(to_utc_text, return_type=str, when_used="json"),
]
"""A time of a request: with a zone, and then in UTC."""
