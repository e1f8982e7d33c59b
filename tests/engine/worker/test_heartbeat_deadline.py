"""Under all accepted settings, a worker out of reach stops its runs before the leader may take them."""

from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from support.factories import (
    WORKER,
)
from support.moving_clock import NOON
from tsuzuki.engine.worker.heartbeat import Heartbeat, HeartbeatResult
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.errors import Unreachable, UsageError
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store.sql.database import ConnectionUse


class DeadDatabase:
    """Never replies; a request fails after `timeout_seconds`."""

    def __init__(self, clock: ManualClock, timeout_seconds: float) -> None:
        self._clock = clock
        self._timeout_seconds = timeout_seconds

    def write(self) -> Any:
        self._clock.advance(self._timeout_seconds)
        raise Unreachable("the database is unreachable")

    statement = write

    def used_for(self, _use: ConnectionUse) -> nullcontext[None]:
        return nullcontext()


def seconds(low: float, high: float) -> st.SearchStrategy[float]:
    return st.floats(low, high, allow_nan=False).map(lambda value: round(value, 3))


@st.composite
def safe_settings(draw: st.DrawFn) -> EngineSettings:
    """Whatever an operator may set about workers, up to the very edge of what is accepted."""
    count = draw(st.integers(1, 20))
    retry_interval = draw(seconds(0.05, 20))
    interval = draw(seconds(0.1, 30))
    grace_min = round(max(count * retry_interval * 2 + 0.01, 0.1), 3)
    ttl_min = max(interval * 2, 0.5)
    return EngineSettings(
        continuation_retry_count=count,
        continuation_retry_interval_seconds=retry_interval,
        worker_grace_seconds=draw(st.one_of(seconds(grace_min, 900), st.just(grace_min))),
        heartbeat_interval_seconds=interval,
        worker_ttl_seconds=draw(st.one_of(seconds(ttl_min, 100), st.just(ttl_min))),
    ).checked()


@given(chosen=safe_settings(), phase=st.floats(0, 1))
@settings(max_examples=150)
def test_a_worker_out_of_reach_stops_before_the_leader_can_take_its_runs(
    chosen: EngineSettings, phase: float
) -> None:
    """Under every set of settings that is accepted, wherever between two heartbeats the outage starts."""
    clock = ManualClock(NOON)
    heartbeat = Heartbeat(
        database=DeadDatabase(clock, timeout_seconds=0.0),  # type: ignore[arg-type]
        clock=clock,
        settings=lambda: chosen,
        worker_id=lambda: WORKER,
    )
    clock.advance(chosen.heartbeat_interval_seconds * phase)
    sent = 0
    while (result := heartbeat.tick()) is not HeartbeatResult.LOST:
        assert result is HeartbeatResult.UNREACHABLE
        clock.advance(heartbeat.seconds_to_next(result))
        sent += 1
        assert sent < 100_000
    assert clock.monotonic() < chosen.lost_after_seconds
    earliest = chosen.worker_ttl_seconds + chosen.continuation_seconds
    assert clock.monotonic() >= earliest - 1e-6, "it stopped too early"


@given(chosen=safe_settings())
@settings(max_examples=50)
def test_settings_that_would_let_the_leader_judge_first_are_refused(
    chosen: EngineSettings,
) -> None:
    hasty = replace(chosen, worker_grace_seconds=chosen.continuation_seconds * 2)
    with pytest.raises(UsageError, match="worker_grace_seconds"):
        hasty.checked()
