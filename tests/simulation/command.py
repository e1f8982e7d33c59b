"""Replay a seed with its trace, or search many for one that violates an invariant."""

import argparse
from collections import Counter
from collections.abc import Sequence

from simulation.world import simulate

PROGRAM = ".venv/bin/python -m tests.simulation"


def replay_command(seed: int) -> str:
    return f"{PROGRAM} {seed}"


def main(words: Sequence[str]) -> int:
    """The exit code: 0 if every invariant held, 1 if not."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", help="replay this seed and print its trace")
    parser.add_argument("--seeds", metavar="FIRST-LAST", type=_seeds, help="run all these")
    arguments = parser.parse_args(words)
    if (arguments.seed is None) == (arguments.seeds is None):
        parser.error("name a seed, or a range of them with --seeds")
    return _replay(arguments.seed) if arguments.seed is not None else _search(arguments.seeds)


def _seeds(word: str) -> range:
    first, _, last = word.partition("-")
    return range(int(first), int(last or first) + 1)


def _replay(seed: int) -> int:
    result = simulate(seed, traced=True)
    print(f"seed {seed}: {result.scenario}")
    print("\n".join(result.trace))
    print(f"\nviolated {result.violation}" if result.violation else "\nevery invariant held")
    return 1 if result.violation else 0


def _search(seeds: range) -> int:
    coverage: Counter[str] = Counter()
    broken = 0
    for seed in seeds:
        result = simulate(seed)
        coverage += result.coverage
        if result.violation:
            broken += 1
            print(f"seed {seed} ({result.scenario}) violated {result.violation}", flush=True)
            print(f"  replay: {replay_command(seed)}", flush=True)
    for what, times in sorted(coverage.items()):
        print(f"{times:8d}  {what}")
    print(f"{len(seeds)} seeds, {broken} of them broken")
    return 1 if broken else 0
