"""Soaks, the same as `make soak`: with some seconds of faults, and in `make test-full` with a minute of them."""

import pytest

from soak.command import soak

SEED = 5


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("seconds", "hazards"),
    [
        pytest.param(8.0, ["kill", "pause"], id="seconds", marks=pytest.mark.slow),
        pytest.param(60.0, ["kill", "pause", "cut"], id="a-minute", marks=pytest.mark.full),
    ],
)
def test_everything_is_stored_posted_and_mailed_once_whatever_is_killed_paused_or_cut(
    seconds: float, hazards: list[str]
) -> None:
    events = soak(SEED, seconds)
    for hazard in hazards:
        assert any(f" {hazard}" in line for line in events), hazard
