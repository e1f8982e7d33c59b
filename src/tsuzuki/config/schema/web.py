"""The section `web`: how the web page and the API are served."""

from typing import Annotated

from tsuzuki.config.schema.field_types import Expects
from tsuzuki.config.schema.strict_model import StrictModel
from tsuzuki.model.access import OwnerMode

SECTION = "web"


class WebSection(StrictModel):
    """The keys of the section."""

    owner_mode: Annotated[OwnerMode, Expects("link or open")] = OwnerMode.LINK
    """How a server on loopback knows its owner while there is no user: by a one-time link (`tsuzuki web link`) and by
    tokens, or, with `open`, not at all: then every account and every program of the machine has all rights."""
