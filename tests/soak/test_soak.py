"""A short soak: the same as `make soak`, with a minute of faults."""

import pytest

from soak.command import soak

SEED = 5
SECONDS = 60.0


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_everything_is_stored_posted_and_mailed_once_whatever_is_killed_paused_or_cut() -> None:
    events = soak(SEED, SECONDS)
    assert any(" kill" in line for line in events)
    assert any(" cut" in line for line in events)
    assert any(" pause" in line for line in events)
