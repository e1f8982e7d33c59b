"""A simulation that finds nothing proves nothing, unless it would have found something."""

import re

import pytest

from simulation.broken_guards import BROKEN_GUARDS, BrokenGuard
from simulation.scenarios import seeds_of
from simulation.world import simulate

SEEDS_MAX = 60


@pytest.mark.parametrize("guard", BROKEN_GUARDS, ids=lambda guard: guard.name)
def test_a_guard_that_is_taken_out_is_missed(guard: BrokenGuard) -> None:
    with guard.broken():
        found = (
            simulate(seed, guarded=guard.guarded).broken
            for seed in seeds_of(guard.scenario, SEEDS_MAX)
        )
        assert any(re.search(guard.law, broken) for broken in found if broken is not None)
