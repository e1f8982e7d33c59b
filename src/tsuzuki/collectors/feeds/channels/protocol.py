"""The protocol of a channel: send a post under a fixed key, and look whether one has arrived.

What `send` raises tells what is known:

    OutcomeUnknown    it may have arrived: look, now and later, or leave it to a person
    PostRefused       it has not, and never will
    AccountStopped    it has not; nothing can be posted until a person mends the account or its settings
    RateLimitedUntil  it has not; from `until` on it may
    NotConnected      it has not, as there was no connection; another time there may be
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any, Protocol, Self

from tsuzuki.collectors.feeds.tables import PostKind
from tsuzuki.outward.errors import SourceRefused, SourceUnavailable


class OutcomeUnknown(SourceUnavailable):
    """The answer did not come, or says nothing: the post may have arrived."""

    code = "post_unknown"


class LookUpFailed(SourceUnavailable):
    """Whether the post has arrived cannot be found out now."""

    code = "post_unknown"


class LookUpImpossible(LookUpFailed):
    """The receiver answers, but cannot tell whether the post has arrived, now or later."""


class PostRefused(SourceRefused):
    """The receiver will not have this post. Another one it may."""

    code = "post_refused"


class AccountStopped(SourceRefused):
    """The receiver will have nothing from this account."""

    code = "account_stopped"


@dataclass(frozen=True, kw_only=True)
class _Stored:
    """Is kept as JSON."""

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_dict(cls, stored: Mapping[str, Any]) -> Self:
        """From what is known to this version: another one may have stored more."""
        names = {field.name for field in fields(cls)}
        return cls(**{name: value for name, value in stored.items() if name in names})


@dataclass(frozen=True, kw_only=True)
class PostLimits(_Stored):
    """How long a post may be; None: as long as it likes."""

    characters_max: int | None = None
    characters_per_url: int | None = None
    """What a link counts, however long; None: what it has."""


@dataclass(frozen=True, kw_only=True)
class PostBody(_Stored):
    """A post as it is sent, fixed when it is intended."""

    text: str
    url: str
    """The item's link as it stands in `text`."""

    canonical_url: str
    language: str
    visibility: str
    sensitive: bool = False
    content_warning: str | None = None
    title: str = ""
    summary: str = ""
    target_id: str | None = None
    """Of an edit or a reply: the post it belongs to, as the receiver knows it."""


@dataclass(frozen=True, kw_only=True)
class Outgoing:
    """One act for a channel. The key is the same however often it is tried."""

    kind: PostKind
    key: str
    body: PostBody
    created_at: datetime


@dataclass(frozen=True, kw_only=True)
class Sent:
    """What the receiver calls the post."""

    remote_id: str | None = None
    remote_url: str | None = None


@dataclass(frozen=True, kw_only=True)
class OwnPost:
    """A post as the receiver has it. `links` are in its text; none of a reply are looked at."""

    remote_id: str
    links: tuple[str, ...] = ()


class Channel(Protocol):
    """One account, used by one thread at a time."""

    can_look_up: bool
    """Whether `look_up` can tell."""

    is_idempotent: bool
    """Whether a second `send` under the same key changes nothing, by the receiver's promise."""

    def read_limits(self) -> PostLimits:
        """Ask the receiver."""

    def check_access(self) -> str:
        """Ask the receiver whether it lets this account in, if that can be asked without a post. Says what was found;
        raises `SourceFailed`."""

    def send(self, post: Outgoing) -> Sent:
        """Send once."""

    def look_up(self, post: Outgoing, *, others: Collection[str]) -> Sent | None:
        """The post, if it has arrived. `others` are known to be other posts. Raises `LookUpFailed`, and
        `LookUpImpossible` if looking again cannot help."""

    def own_posts(self, *, since: datetime) -> Iterator[OwnPost]:
        """Every post that the account has made since then, in any order. Raises `LookUpImpossible` if the receiver
        cannot tell, and `SourceFailed`."""

    def close(self) -> None:
        """Close its connections."""
