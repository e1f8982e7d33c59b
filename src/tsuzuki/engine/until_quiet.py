"""Running the engine until nothing is due: the daemon's work without a daemon."""

import threading
from collections import Counter

from tsuzuki.engine.process import Engine
from tsuzuki.model.errors import Conflict
from tsuzuki.model.states import RunState

ROUND_SECONDS = 5.0


def run_until_quiet(engine: Engine, *, stop: threading.Event) -> Counter[RunState]:
    """Lead and work until nothing is due, assigned or running. Answers what ended, and how.

    Raises `Conflict` if another process leads: then that one does what is due.
    """
    engine.settings.refresh()
    if not (engine.lease.free_at_once() and engine.lease.tick()):
        raise Conflict(
            "another process leads, and runs what is due",
            hint="See who: tsuzuki leader show",
            code="already_running",
        )
    engine.start()
    try:
        while not stop.is_set():
            engine.rounds.clear()
            engine.bells.leader.ring()
            engine.rounds.wait(ROUND_SECONDS)
            if engine.rounds.is_set() and engine.is_quiet():
                break
            stop.wait(0.02)
    finally:
        engine.shut_down()
    return engine.ended
