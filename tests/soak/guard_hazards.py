"""What each guard is against, once more when nothing else goes wrong: so a soak without the guard surely meets it."""

import signal
from collections.abc import Callable, Sequence

from soak.broken_guards import BrokenGuard
from soak.nodes import Node
from soak.outside import Outside
from support.daemons import eventually
from support.load import Load
from tsuzuki.sandbox.mastodon import WriteCase
from tsuzuki.sandbox.smtp import Step

RUNS = 60
PAUSES_MAX = 5
OVERTAKEN_SECONDS = 20.0


def arm(guard: BrokenGuard, outside: Outside) -> None:
    """Before the faults: what is met by the first that comes."""
    if guard is BrokenGuard.MAILS:
        outside.mail.fail_at(Step.ANSWER)


def meet(guard: BrokenGuard, outside: Outside, nodes: Sequence[Node], load: Load) -> None:
    """After the faults."""
    match guard:
        case BrokenGuard.POSTS:
            outside.mastodon.post_cases.add(WriteCase.REPLY_LOST)
            outside.publish()
        case BrokenGuard.PAYMENTS:
            outside.mastodon.post_cases.add(WriteCase.SERVER_ERROR)
            outside.publish()
        case BrokenGuard.FENCE:
            _pause_until_overtaken(nodes[0], load)


def _pause_until_overtaken(node: Node, load: Load) -> None:
    """A node is paused while it executes, until another has executed the next attempt of the same."""
    for _ in range(PAUSES_MAX):
        load.submit_at_once(len(load.confirmed) + RUNS)
        load.wait_for_ends(RUNS // 10)
        node.send(signal.SIGSTOP)
        executed = load.attempts("start") - load.attempts("end")
        try:
            eventually(
                _overtakes(load, executed), what="a later attempt", seconds=OVERTAKEN_SECONDS
            )
        except AssertionError:
            continue
        else:
            return
        finally:
            node.send(signal.SIGCONT)


def _overtakes(load: Load, executed: set[tuple[str, int]]) -> Callable[[], bool]:
    def is_overtaken() -> bool:
        ended = load.attempts("end")
        return any((key, attempt + 1) in ended for key, attempt in executed - ended)

    return is_overtaken
