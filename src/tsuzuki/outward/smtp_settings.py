"""The settings of a mail server, as a collector's section holds them."""

from enum import StrEnum
from typing import Annotated

from pydantic import BeforeValidator, Field, SecretStr

from tsuzuki.config import Expects
from tsuzuki.config.schema.strict_model import StrictModel


class Encryption(StrEnum):
    """How the connection to the mail server is encrypted."""

    STARTTLS = "starttls"
    """Ask for it on the ordinary port; go no further without."""

    IMPLICIT = "implicit"
    """From the first byte, usually on port 465."""

    NONE = "none"
    """Not at all: for a server on the same machine."""


def _listed(value: object) -> object:
    """Addresses as a list, or as text with commas, as in an environment variable."""
    if not isinstance(value, str):
        return value
    return [part.strip() for part in value.split(",") if part.strip()]


class SmtpSettings(StrictModel):
    """The server that takes our mail, and the addresses to use. Nothing is mailed without `host`."""

    host: str | None = None
    """The mail server. Nothing is mailed without it."""
    port: Annotated[int, Field(ge=1, le=65_535), Expects("a port from 1 to 65535")] = 587
    """Its port."""
    encryption: Encryption = Encryption.STARTTLS
    """How the connection is encrypted; `none` is for a server on this machine."""
    user: str | None = None
    """The name to sign in with."""
    password: SecretStr | None = None
    """The password to sign in with."""
    sender: str | None = Field(default=None, alias="from")
    """The address of the sender."""
    to: Annotated[
        list[str],
        BeforeValidator(_listed, json_schema_input_type=list[str] | str),
        Expects("a list of addresses, or text with commas"),
    ] = Field(default_factory=list)
    """The addresses of the readers."""
