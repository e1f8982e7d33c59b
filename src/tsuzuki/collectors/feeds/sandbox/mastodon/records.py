"""What the server stores: accounts, statuses with their former versions, media."""

from dataclasses import dataclass, field
from datetime import datetime

from .text import EntityKind, as_html, entities


@dataclass(kw_only=True)
class Account:
    """An account with its one token. Its flags may be set while the server runs."""

    id: int
    username: str
    token: str
    created_at: datetime
    suspended: bool = False
    """403 to each request."""

    token_revoked: bool = False
    """401 to each request."""

    token_can_write: bool = True
    """Without: 403, the token's scopes do not include writing."""


@dataclass(frozen=True, kw_only=True)
class Version:
    """One version of a status: what an edit changes."""

    text: str
    spoiler_text: str
    sensitive: bool
    language: str
    media_ids: tuple[int, ...]


@dataclass(kw_only=True)
class Status:
    """One status. The first version is what was posted, the last one what is shown."""

    id: int
    account: Account
    visibility: str
    created_at: datetime
    versions: list[Version]
    version_times: list[datetime]
    in_reply_to_id: int | None = None
    reblog_of_id: int | None = None
    idempotency_key: str | None = None
    deleted: bool = False
    base_url: str = field(default="", repr=False)

    @property
    def shown(self) -> Version:
        return self.versions[-1]

    @property
    def text(self) -> str:
        return self.shown.text

    @property
    def edited_at(self) -> datetime | None:
        return self.version_times[-1] if len(self.versions) > 1 else None

    @property
    def content(self) -> str:
        """The text as HTML."""
        return as_html(self.text, self.base_url)

    @property
    def urls(self) -> list[str]:
        return self._values(EntityKind.URL)

    @property
    def mentions(self) -> list[str]:
        """The accounts it notifies: each name is taken for one that exists."""
        return self._values(EntityKind.MENTION)

    @property
    def hashtags(self) -> list[str]:
        return self._values(EntityKind.HASHTAG)

    def _values(self, kind: EntityKind) -> list[str]:
        return [entity.value for entity in entities(self.text) if entity.kind is kind]


@dataclass(kw_only=True)
class UploadedMedia:
    """A file that was uploaded."""

    id: int
    account: Account
    mime_type: str
    data: bytes = field(repr=False)
    description: str | None
    looks_until_processed: int
    attached: bool = False

    @property
    def processed(self) -> bool:
        return self.looks_until_processed <= 0
