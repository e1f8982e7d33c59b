"""Run the engine in the foreground until nothing is due: one batch, without a daemon."""

import threading
from collections import Counter

from tsuzuki.engine.process import Engine
from tsuzuki.model.errors import Conflict
from tsuzuki.model.states import RunState

ROUND_SECONDS = 5.0


def run_until_idle(engine: Engine, *, stop: threading.Event) -> Counter[RunState]:
    """Lead and work until nothing is due, assigned or running. Returns what ended, and how.

    Raises `Conflict` if another process leads: that one runs what is due.
    """
    engine.settings.refresh()
    if engine.lease.seconds_until_free() or not engine.lease.tick():
        raise another_leads()
    engine.start()
    try:
        _wait_until_idle(engine, stop)
    finally:
        engine.shut_down()
    if engine.fatal is not None:
        raise engine.fatal
    return engine.ended


def another_leads() -> Conflict:
    return Conflict(
        "another process is the leader and runs what is due",
        hint="Show the leader: tsuzuki leader show",
        code="already_running",
    )


def _wait_until_idle(engine: Engine, stop: threading.Event) -> None:
    """Return when no worker holds a run, and a whole leader round that started after that was seen had
    nothing to do. What is still queued then is blocked by a rule (its job is disabled, no worker has its
    tags), not by time."""
    idle_since: int | None = None
    while not (stop.is_set() or engine.fatal):
        engine.leader_steps.rounds.clear()
        engine.wakeups.leader.wake()
        engine.leader_steps.rounds.wait(ROUND_SECONDS)
        last = engine.leader_steps.last_round
        if last is None or last.did_something or not engine.is_idle():
            idle_since = None
        elif idle_since is None:
            idle_since = engine.leader_steps.rounds_done
        elif engine.leader_steps.rounds_done >= idle_since + 2:
            return
        stop.wait(0.01)
