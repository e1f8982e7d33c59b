"""Which ends are tried again, how often, and after how long."""

from datetime import UTC, datetime, timedelta
from functools import partial
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.losses import FREE_PER_COUNTED, NO_LOSSES, Losses, lost_alone
from tsuzuki.model.retry import RetryDecision, RetryPolicy, decide_retry
from tsuzuki.model.states import Reason, RunState

STEADY = RetryPolicy(max_retries=3, jitter=0.0)

policies = st.builds(
    RetryPolicy,
    max_retries=st.integers(0, 10),
    initial_seconds=st.floats(0, 1e6),
    factor=st.floats(1, 1e6),
    cap_seconds=st.floats(0, 1e6),
    jitter=st.floats(0, 1),
)


def decide(
    state: RunState,
    reason: Reason | None = None,
    *,
    policy: RetryPolicy = STEADY,
    retries_used: int = 0,
    losses: Losses = NO_LOSSES,
    lost_alone: bool = True,
    may_be_elsewhere: bool = False,
    retry_after_seconds: float | None = None,
) -> RetryDecision | None:
    return decide_retry(
        policy,
        state=state,
        reason=reason,
        retries_used=retries_used,
        losses=losses,
        losses_max=5,
        random=Random(1),
        lost_alone=lost_alone,
        may_be_elsewhere=may_be_elsewhere,
        retry_after_seconds=retry_after_seconds,
    )


def test_the_wait_doubles_up_to_the_cap() -> None:
    policy = RetryPolicy(cap_seconds=60.0, jitter=0.0)
    assert [policy.delay_seconds(used, Random(1)) for used in range(5)] == [10, 20, 40, 60, 60]


@given(policies, st.integers(0, 10**400), st.integers())
def test_the_wait_is_never_negative_nor_above_the_cap(
    policy: RetryPolicy, retries_used: int, seed: int
) -> None:
    assert 0 <= policy.delay_seconds(retries_used, Random(seed)) <= policy.cap_seconds


def test_jitter_moves_the_wait_to_both_sides_and_no_further_than_its_ratio() -> None:
    policy, random = RetryPolicy(jitter=0.2), Random(1)
    waits = [policy.delay_seconds(0, random) for _ in range(500)]
    assert 8 <= min(waits) < 8.2
    assert 11.8 < max(waits) <= 12


def test_no_initial_wait_means_no_wait_ever() -> None:
    assert RetryPolicy(initial_seconds=0.0).delay_seconds(10**6, Random(1)) == 0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("max_retries", -1),
        ("max_retries", 1.5),
        ("max_retries", True),
        ("max_retries", "3"),
        ("initial_seconds", -0.1),
        ("initial_seconds", float("nan")),
        ("factor", 0.5),
        ("factor", float("inf")),
        ("cap_seconds", -1),
        ("cap_seconds", 10**400),
        ("jitter", 1.1),
    ],
)
def test_a_policy_out_of_bounds_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(ConfigurationError, match=name) as caught:
        RetryPolicy(**{name: value})  # type: ignore[arg-type]
    assert caught.value.hint


@pytest.mark.parametrize("state", [RunState.FAILED, RunState.TIMED_OUT])
def test_a_bad_end_is_retried_until_the_retries_are_used_up(state: RunState) -> None:
    assert decide(state, retries_used=2) == RetryDecision(delay_seconds=40.0, retries_used=3)
    assert decide(state, retries_used=3) is None


@pytest.mark.parametrize("state", sorted(set(RunState) - {RunState.FAILED, RunState.TIMED_OUT}))
@pytest.mark.parametrize("reason", [None, Reason.WORKER_SHUTDOWN, Reason.HANDLER_FAILED])
def test_nothing_but_a_bad_end_is_retried(state: RunState, reason: Reason | None) -> None:
    assert decide(state, reason) is None


@pytest.mark.parametrize(
    "reason", [Reason.HANDLER_UNKNOWN, Reason.ARGUMENTS_INVALID, Reason.JOB_DELETED]
)
def test_what_trying_again_cannot_mend_is_not_retried(reason: Reason) -> None:
    assert decide(RunState.FAILED, reason) is None


def test_a_handler_that_another_worker_may_have_costs_no_retry_a_bounded_number_of_times() -> None:
    missing = partial(decide, RunState.FAILED, Reason.HANDLER_UNKNOWN, may_be_elsewhere=True)
    for counted, wait in enumerate([2.0, 4.0, 8.0, 16.0, 32.0]):
        decision = missing(losses=Losses(counted=counted), retries_used=1)
        assert decision is not None
        assert (decision.retries_used, decision.losses) == (1, Losses(counted=counted + 1))
        assert wait / 2 <= decision.delay_seconds <= wait * 1.5
    assert missing(losses=Losses(counted=5)) is None


def test_a_workers_shutdown_is_made_good_at_once_and_costs_no_retry() -> None:
    for used in (0, 3, 99):
        decision = decide(RunState.FAILED, Reason.WORKER_SHUTDOWN, retries_used=used)
        assert decision == RetryDecision(delay_seconds=0.0, retries_used=used)


def test_a_worker_lost_alone_costs_no_retry_until_it_has_happened_too_often() -> None:
    never, lost = RetryPolicy(max_retries=0), Reason.WORKER_LOST
    made_good = decide(RunState.FAILED, lost, policy=never, losses=Losses(counted=4, free=3))
    assert made_good == RetryDecision(
        delay_seconds=0.0, retries_used=0, losses=Losses(counted=5, free=3)
    )
    assert decide(RunState.FAILED, lost, policy=never, losses=Losses(counted=5)) is None
    assert decide(RunState.FAILED, lost, losses=Losses(counted=5)) == RetryDecision(
        delay_seconds=10.0, retries_used=1, losses=Losses(counted=5)
    )


OUTAGES = [(Reason.WORKER_LOST, True), (Reason.NOT_CONFIRMED, False)]


@pytest.mark.parametrize(("reason", "together"), OUTAGES)
def test_a_loss_in_an_outage_does_not_count(reason: Reason, together: bool) -> None:
    never = RetryPolicy(max_retries=0)
    used_up = Losses(counted=5, free=7)
    decision = decide(
        RunState.FAILED, reason, policy=never, losses=used_up, lost_alone=not together
    )
    assert decision is not None
    assert (decision.retries_used, decision.losses) == (0, Losses(counted=5, free=8))


@pytest.mark.parametrize(("reason", "together"), OUTAGES)
def test_an_outage_without_end_does_not_repeat_a_run_for_ever(
    reason: Reason, together: bool
) -> None:
    losses, repeats = NO_LOSSES, 0
    never = RetryPolicy(max_retries=0)
    while decision := decide(
        RunState.FAILED, reason, policy=never, losses=losses, lost_alone=not together
    ):
        losses, repeats = decision.losses, repeats + 1
    assert repeats == 5 * FREE_PER_COUNTED + 5


def test_free_repeats_wait_longer_and_longer_and_not_all_as_long() -> None:
    waits = [Losses(free=free).free_wait_seconds for free in range(12)]
    assert waits == [0, 1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 600]
    assert Losses(free=10**6).free_wait_seconds == 600
    delays = {
        decide_retry(
            STEADY,
            state=RunState.FAILED,
            reason=Reason.NOT_CONFIRMED,
            retries_used=0,
            losses=Losses(free=5),
            losses_max=5,
            random=Random(seed),
        )
        for seed in range(20)
    }
    seconds = sorted(decision.delay_seconds for decision in delays if decision)
    assert len(seconds) == 20
    assert 8 <= seconds[0] < 12 < 20 < seconds[-1] <= 24


NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("seconds", "alone"),
    [
        ({}, ""),
        ({"a": 0}, "a"),
        ({"a": 0, "b": 3}, ""),
        ({"a": 0, "b": 3.1}, "ab"),
        ({"a": 0, "b": 2.5, "c": 5, "d": 9, "e": 60, "f": 60}, "d"),
    ],
)
def test_workers_whose_last_heartbeats_are_close_were_not_lost_alone(
    seconds: dict[str, float], alone: str
) -> None:
    heartbeats = {name: NOON + timedelta(seconds=at) for name, at in seconds.items()}
    assert lost_alone(heartbeats, heartbeat_interval_seconds=2.0) == frozenset(alone)


def test_what_is_made_good_waits_as_long_as_the_other_side_asked_for() -> None:
    waits = decide(RunState.FAILED, Reason.NOT_CONFIRMED, retry_after_seconds=1.0)
    assert waits == RetryDecision(delay_seconds=1.0, retries_used=0, losses=Losses(free=1))


def test_the_other_sides_wish_is_honoured_when_it_is_longer() -> None:
    longer = decide(RunState.FAILED, retry_after_seconds=9000.0)
    assert longer == RetryDecision(delay_seconds=9000.0, retries_used=1)
    shorter = decide(RunState.FAILED, retry_after_seconds=1.0)
    assert shorter == RetryDecision(delay_seconds=10.0, retries_used=1)
