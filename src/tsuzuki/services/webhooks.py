"""Webhooks: requests of other services that become events, once each, after their signature was checked.

The bytes of the body are checked as they came, before anything is read out of them.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from tsuzuki.store.events import Event


@dataclass(frozen=True, kw_only=True)
class Received:
    """`is_new` is false if the same delivery had come before; the event is that of the first one then."""

    event: Event
    is_new: bool


class Webhooks:
    def names(self) -> list[str]:
        """The webhooks that the configuration has."""
        raise NotImplementedError

    def receive(self, name: str, *, headers: Mapping[str, str], body: bytes) -> Received:
        """Check a delivery and store its event. Header names in any case. Raises `NotFound` (`webhook_unknown`),
        `NotAuthenticated` (`signature_missing`, `signature_wrong`, `signature_stale`), `UsageError` for a body
        that is not JSON, `ConfigurationError` if the secret is not set."""
        raise NotImplementedError
