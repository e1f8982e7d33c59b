"""Refused credentials are logged once for each address and minute, however many there are."""

import pytest

from support.moving_clock import MovingClock
from tsuzuki.web.security.refusal_log import ADDRESSES_MAX, INTERVAL_SECONDS, RefusalLog


def test_a_flood_of_refusals_is_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    clock = MovingClock()
    refusals = RefusalLog(clock)
    for _ in range(500):
        refusals.note("192.0.2.7", "token")
    assert caplog.text.count("credentials_refused") == 1
    clock.advance(INTERVAL_SECONDS)
    refusals.note("192.0.2.7", "token")
    assert caplog.text.count("credentials_refused") == 2
    assert "499" in caplog.text


def test_the_addresses_that_are_remembered_are_limited() -> None:
    refusals = RefusalLog(MovingClock())
    for number in range(ADDRESSES_MAX + 10):
        refusals.note(f"address {number}", "token")
    assert len(refusals._by_address) == ADDRESSES_MAX
