"""What each guard is against, once more when nothing else goes wrong: so a soak without the guard surely meets it."""

import signal
from collections.abc import Sequence

from soak.broken_guards import BrokenGuard
from soak.nodes import Node
from soak.outside import Outside
from support.daemons import eventually
from support.load import Load
from tsuzuki.collectors.books.sandbox.smtp import SmtpStep
from tsuzuki.collectors.feeds.sandbox.mastodon import WriteCase

RUNS = 60


def arm(guard: BrokenGuard, outside: Outside) -> None:
    """Before the faults: what is met by the first that comes."""
    if guard is BrokenGuard.MAILS:
        outside.mail.fail_at(SmtpStep.ANSWER)


def meet(guard: BrokenGuard, outside: Outside, nodes: Sequence[Node], load: Load) -> None:
    """After the faults."""
    match guard:
        case BrokenGuard.POSTS:
            outside.mastodon.post_cases.add(WriteCase.REPLY_LOST)
            outside.publish()
        case BrokenGuard.PAYMENTS:
            outside.publish()
        case BrokenGuard.FENCE:
            _pause_until_overtaken(nodes[0], load)


def _pause_until_overtaken(node: Node, load: Load) -> None:
    """A node is paused while it executes, until another has executed the next attempt of the same. Then it goes on,
    and writes."""
    known = set(load.confirmed)
    load.submit_at_once(len(known) + RUNS)
    load.wait_for_ends(RUNS // 10)
    node.send(signal.SIGSTOP)
    new = set(load.confirmed) - known
    eventually(lambda: _is_overtaken(load, new), what="the next attempt of what is paused")
    node.send(signal.SIGCONT)


def _is_overtaken(load: Load, keys: set[str]) -> bool:
    """Whether an attempt that has started and not ended is followed by one that has."""
    ended = load.attempts("end")
    open_attempts = load.attempts("start") - ended
    return any(key in keys and (key, attempt + 1) in ended for key, attempt in open_attempts)
