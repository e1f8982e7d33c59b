"""Names of users and tokens in requests. The document says which there can be; the service says it in words."""

from typing import Annotated, Any

from fastapi import Path
from pydantic import Field

from tsuzuki.services.access.passwords import LENGTH_MAX, LENGTH_MIN
from tsuzuki.services.access.permissions import NAME_LENGTH_MAX, NAME_PATTERN

_POSSIBLE: dict[str, Any] = {"pattern": f"^{NAME_PATTERN}$"}
GivenName = Annotated[
    str,
    Field(
        min_length=1,
        max_length=NAME_LENGTH_MAX,
        examples=["ada"],
        json_schema_extra=_POSSIBLE,
    ),
]
UserName = Annotated[
    str,
    Path(
        min_length=1,
        max_length=NAME_LENGTH_MAX,
        examples=["ada"],
        json_schema_extra=_POSSIBLE,
    ),
]
Password = Annotated[str, Field(max_length=LENGTH_MAX, json_schema_extra={"format": "password"})]
NewPassword = Annotated[
    str,
    Field(
        max_length=LENGTH_MAX,
        description="Must not repeat a single character or equal the name.",
        json_schema_extra={"format": "password", "minLength": LENGTH_MIN},
    ),
]
