"""Thousands of bad days, each another one, and no law broken in any of them."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from simulation.command import replay_command
from simulation.fate import Scenario
from simulation.scenarios import SCENARIOS, seeds_of
from simulation.world import simulate

ROOT = Path(__file__).parents[2]
SEEDS_EACH = 300
"""Of each scenario, in parts that can be lived through side by side."""

PARTS = 2


@pytest.mark.timeout(600)
@pytest.mark.parametrize("part", range(PARTS))
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_no_law_is_broken_on_any_bad_day(scenario: Scenario, part: int) -> None:
    reached: Counter[str] = Counter()
    for seed in seeds_of(scenario.name, SEEDS_EACH)[part::PARTS]:
        told = simulate(seed)
        assert told.broken is None, f"{told.broken}\nits story: {replay_command(seed)}"
        reached += told.reached
    missing = [what for what in scenario.must_reach if not reached[what]]
    assert not missing, f"these days were not bad enough: {missing}"


@pytest.mark.parametrize("seed", range(len(SCENARIOS)))
def test_the_same_seed_is_the_same_story(seed: int) -> None:
    first = simulate(seed, tell=True)
    simulate(seed + 1)
    again = simulate(seed, tell=True)
    assert len(first.story) > 20
    assert again.story == first.story
    assert again.reached == first.reached


def test_a_seed_is_told_by_one_command() -> None:
    words = replay_command(3).split()
    assert words[0] == ".venv/bin/python"
    told = subprocess.run(
        [sys.executable, *words[1:]], cwd=ROOT, capture_output=True, text=True, check=True
    )
    title, *story = told.stdout.splitlines()
    assert title == f"seed 3: {SCENARIOS[3].name}"
    assert story[: len(story) - 2] == simulate(3, tell=True).story


def test_many_seeds_are_searched_by_one_command() -> None:
    words = [sys.executable, "-m", "tests.simulation", "--seeds", "0-1"]
    found = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=True)
    assert found.stdout.splitlines()[-1] == "2 seeds, 0 of them broken"
