"""Mutation tests of the simulation: every guard that is removed must lead to a violation."""

import re

import pytest

from simulation.broken_guards import BROKEN_GUARDS, BrokenGuard
from simulation.scenarios import scenario_named, seeds_of
from simulation.world import simulate

pytestmark = pytest.mark.slow

SEEDS_MAX = 60


@pytest.mark.parametrize("guard", BROKEN_GUARDS, ids=lambda guard: guard.name)
def test_a_removed_guard_leads_to_a_violation(guard: BrokenGuard) -> None:
    scenario = scenario_named(guard.scenario)
    known = [] if guard.seed is None else [guard.seed]
    with guard.broken():
        found = (
            simulate(seed, guarded=guard.guarded, scenario=scenario).violation
            for seed in (*known, *seeds_of(guard.scenario, SEEDS_MAX))
        )
        assert any(re.search(guard.violation, each) for each in found if each is not None)
