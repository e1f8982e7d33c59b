"""The page about the proof lists every scenario and every broken guard."""

from pathlib import Path

import pytest

from simulation.broken_guards import BROKEN_GUARDS, BrokenGuard
from simulation.faults import Scenario
from simulation.scenarios import NAMED, SCENARIOS

PAGE = Path(__file__).parents[2] / "docs/discussion/proof.md"
ROWS = {tuple(line.strip("| ").split(" | ")) for line in PAGE.read_text().splitlines()}


@pytest.mark.parametrize("scenario", [*SCENARIOS, *NAMED], ids=lambda scenario: scenario.name)
def test_a_scenario_is_described(scenario: Scenario) -> None:
    assert scenario.name in {row[0] for row in ROWS}


@pytest.mark.parametrize("guard", BROKEN_GUARDS, ids=lambda guard: guard.name)
def test_a_broken_guard_is_listed(guard: BrokenGuard) -> None:
    assert (guard.name, guard.scenario) in ROWS
