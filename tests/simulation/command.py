"""Replay a seed with its trace, or search many for one that violates an invariant."""

import argparse
from collections import Counter
from collections.abc import Sequence

from simulation.faults import Scenario
from simulation.scenarios import NAMED, SCENARIOS, scenario_named, scenario_of
from simulation.world import simulate

PROGRAM = ".venv/bin/python -m tests.simulation"


def replay_command(seed: int, scenario: Scenario | None = None) -> str:
    if scenario is None or scenario is scenario_of(seed):
        return f"{PROGRAM} {seed}"
    return f'{PROGRAM} {seed} --scenario "{scenario.name}"'


def main(words: Sequence[str]) -> int:
    """The exit code: 0 if every invariant held, 1 if not."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", help="replay this seed and print its trace")
    parser.add_argument("--seeds", metavar="FIRST-LAST", type=_seeds, help="run all these")
    parser.add_argument("--scenario", choices=[each.name for each in (*SCENARIOS, *NAMED)])
    arguments = parser.parse_args(words)
    scenario = arguments.scenario and scenario_named(arguments.scenario)
    if (arguments.seed is None) == (arguments.seeds is None):
        parser.error("name a seed, or a range of them with --seeds")
    if arguments.seed is not None:
        return _replay(arguments.seed, scenario)
    return _search(arguments.seeds, scenario)


def _seeds(word: str) -> range:
    first, _, last = word.partition("-")
    return range(int(first), int(last or first) + 1)


def _replay(seed: int, scenario: Scenario | None) -> int:
    result = simulate(seed, traced=True, scenario=scenario)
    print(f"seed {seed}: {result.scenario}")
    print("\n".join(result.trace))
    print(f"\nviolated {result.violation}" if result.violation else "\nevery invariant held")
    return 1 if result.violation else 0


def _search(seeds: range, scenario: Scenario | None) -> int:
    coverage: Counter[str] = Counter()
    broken = 0
    for seed in seeds:
        result = simulate(seed, scenario=scenario)
        coverage += result.coverage
        if result.violation:
            broken += 1
            print(f"seed {seed} ({result.scenario}) violated {result.violation}", flush=True)
            print(f"  replay: {replay_command(seed, scenario)}", flush=True)
    for what, times in sorted(coverage.items()):
        print(f"{times:8d}  {what}")
    print(f"{len(seeds)} seeds, {broken} of them broken")
    return 1 if broken else 0
