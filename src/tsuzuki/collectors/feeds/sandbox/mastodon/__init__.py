"""A stand-in for a Mastodon server: statuses, accounts, media, the instance; keys, limits and tokens.

    application = mastodon()
    with StandIn(application) as server:
        client = Mastodon(api_base_url=server.url, access_token=TOKEN)
    assert [status.text for status in application.statuses] == ["Hello"]

`application.settings` configures it (`MastodonSettings`: what a repeated key does, the limits of the instance),
`application.post_cases` and `edit_cases` make a write go wrong (`WriteCase`), `application.account` has the flags
of the account (`suspended`, `token_revoked`).
"""

from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.sandbox.stand_in_kind import StandInContext

from .api import Mastodon
from .cases import KeyMode, WriteCase
from .settings import MastodonSettings

TOKEN = "sandbox-token"  # noqa: S105 -- it opens nothing but the sandbox

__all__ = ["TOKEN", "KeyMode", "Mastodon", "MastodonSettings", "WriteCase", "mastodon", "start"]


def mastodon(
    *, token: str = TOKEN, settings: MastodonSettings | None = None, clock: Clock | None = None
) -> Mastodon:
    """The application of a server with one account."""
    return Mastodon(token=token, clock=clock or SystemClock(), settings=settings)


def start(context: StandInContext) -> dict[str, str]:
    """Start it in `tsuzuki sandbox`."""
    server = context.serve(mastodon())
    return {"SANDBOX_MASTODON_URL": server.url, "SANDBOX_MASTODON_TOKEN": TOKEN}
