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
    if engine.lease.seconds_until_free() or not engine.lease.tick():
        raise Conflict(
            "another process leads, and runs what is due",
            hint="See who: tsuzuki leader show",
            code="already_running",
        )
    engine.start()
    try:
        _wait_until_quiet(engine, stop)
    finally:
        engine.shut_down()
    return engine.ended


def _wait_until_quiet(engine: Engine, stop: threading.Event) -> None:
    """Until nothing is held by a worker and a whole round, begun after that was seen, found nothing to
    do. What waits then is held by a rule (its job is off, no worker has its tags), not by time."""
    quiet_since: int | None = None
    while not stop.is_set():
        engine.leading.rounds.clear()
        engine.bells.leader.ring()
        engine.leading.rounds.wait(ROUND_SECONDS)
        led = engine.leading.last_led
        if led is None or led.did_something or not engine.is_quiet():
            quiet_since = None
        elif quiet_since is None:
            quiet_since = engine.leading.rounds_done
        elif engine.leading.rounds_done >= quiet_since + 2:
            return
        stop.wait(0.01)
