"""Guards that a soak can run without, to prove that it finds fault then (mutation testing).

A guard is patched in the processes that the soak starts, before the program runs; the product knows nothing of it.
"""

from collections.abc import Collection
from dataclasses import replace
from enum import StrEnum
from uuid import uuid4

from soak.outside import Outside
from support.forked_program import PATCH_VARIABLE
from tsuzuki.collectors.feeds.channels.mastodon import MastodonChannel
from tsuzuki.collectors.feeds.channels.protocol import Outgoing, Sent
from tsuzuki.sandbox.mastodon import WriteCase


class BrokenGuard(StrEnum):
    """By the function below that breaks it."""

    POSTS = "repeat_posts"


def broken_in(guard: BrokenGuard | None) -> dict[str, str]:
    """The variables of a process that runs without this guard."""
    return {} if guard is None else {PATCH_VARIABLE: f"{__name__}:{guard}"}


def meet_hazard(guard: BrokenGuard, outside: Outside) -> None:
    """What the guard is against, once more when nothing else goes wrong: so it is surely met."""
    match guard:
        case BrokenGuard.POSTS:
            outside.mastodon.post_cases.add(WriteCase.REPLY_LOST)
            outside.publish()


def repeat_posts() -> None:
    """A post whose answer was lost is sent again, under another key, without looking whether it is there."""
    send = MastodonChannel.send

    def send_anew(channel: MastodonChannel, post: Outgoing) -> Sent:
        return send(channel, replace(post, key=uuid4().hex))

    def look_nowhere(
        _channel: MastodonChannel, _post: Outgoing, *, others: Collection[str]
    ) -> Sent | None:
        return None

    MastodonChannel.send = send_anew  # type: ignore[method-assign]  # that is the patch
    MastodonChannel.look_up = look_nowhere  # type: ignore[method-assign]  # that is the patch
