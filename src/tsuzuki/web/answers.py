"""The models of answers, and times as they are written in them."""

from datetime import UTC, datetime
from typing import Annotated

from pydantic import BaseModel, ConfigDict, PlainSerializer


class Model(BaseModel):
    """What is sent and what is answered: fields that are not named are refused."""

    model_config = ConfigDict(extra="forbid")


def to_utc_text(moment: datetime) -> str:
    """Of fixed width, so that the order of texts is the order of times."""
    text = moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds")
    return f"{text}Z"


Moment = Annotated[datetime, PlainSerializer(to_utc_text, return_type=str, when_used="json")]
"""A time in UTC: `2026-11-17T09:30:00.000000Z`."""
