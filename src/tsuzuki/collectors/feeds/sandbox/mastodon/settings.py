"""How the server is configured; each value may be set anew while it serves."""

from dataclasses import dataclass

from .cases import KeyMode


@dataclass(kw_only=True)
class MastodonSettings:
    key_mode: KeyMode = KeyMode.HONOURED
    key_seconds: int = 60 * 60
    """How long a key is remembered."""

    max_characters: int = 500
    characters_per_url: int = 23
    description_limit: int = 1500
    image_size_limit: int = 16 * 1024 * 1024
    looks_until_processed: int = 1
    """How often a file that was uploaded is asked for before it is processed."""

    cards: bool = True
    """Whether a status gets a card for its first link; never in the answer to the post itself."""

    requests_max: int | None = None
    """Requests of an account in five minutes; None limits nothing. The real one: 300."""

    posts_max: int | None = None
    """Posts of an account in three hours. The real one: 300."""

    list_lag_seconds: int = 0
    """How long after it is stored a status is in the list of its account's statuses."""

    reset_as_epoch: bool = False
    """Write the reset of a limit in seconds since 1970, as GoToSocial does."""

    def __post_init__(self) -> None:
        self.key_mode = KeyMode(self.key_mode)
