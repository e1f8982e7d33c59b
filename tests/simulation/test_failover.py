"""A failover to an asynchronous standby loses a term: two leaders of one epoch, and only the current one writes."""

import re
from collections import Counter

import pytest

from simulation.broken_guards import LEADER, LEADER_WRITES, without
from simulation.faults import BOTH, Scenario
from simulation.world import simulate

pytestmark = pytest.mark.slow

FAILOVERS = Scenario(
    name="failovers",
    faults={"lose_next_term": 3, "stop": 1, "pause": 1},
    every_seconds=0.4,
    fault_seconds=(8.0,),
    roles=(BOTH, BOTH, BOTH),
    acts=("submit", "submit", "submit", "step_down"),
    act_every_seconds=0.4,
    must_cover=(
        "a term was lost in a failover",
        "a write of another holder of the epoch was refused",
    ),
)
SEEDS = range(20)
OF_ONE_EPOCH = re.compile(r"wrote under epoch (\d+); the current is \1 of n")


@pytest.mark.timeout(300)
def test_a_leader_whose_term_was_lost_writes_nothing() -> None:
    coverage: Counter[str] = Counter()
    for seed in SEEDS:
        result = simulate(seed, scenario=FAILOVERS)
        assert result.violation is None, f"seed {seed}: {result.violation}"
        coverage += result.coverage
    assert not [what for what in FAILOVERS.must_cover if not coverage[what]]


def test_a_fence_without_the_holder_lets_it_write() -> None:
    with without(LEADER_WRITES, LEADER):
        found = (simulate(seed, scenario=FAILOVERS).violation for seed in SEEDS)
        assert any(OF_ONE_EPOCH.search(each) for each in found if each is not None)
