"""The command that tells a seed's story, or looks through many for one that breaks a law."""

import argparse
from collections import Counter
from collections.abc import Sequence

from simulation.world import simulate

PROGRAM = ".venv/bin/python -m tests.simulation"


def replay_command(seed: int) -> str:
    return f"{PROGRAM} {seed}"


def main(words: Sequence[str]) -> int:
    """0 if no law was broken, 1 if one was."""
    parser = argparse.ArgumentParser(prog=PROGRAM, description=__doc__)
    parser.add_argument("seed", type=int, nargs="?", help="tell the story of this seed")
    parser.add_argument("--seeds", metavar="FIRST-LAST", type=_seeds, help="live through all these")
    asked = parser.parse_args(words)
    if (asked.seed is None) == (asked.seeds is None):
        parser.error("name a seed, or a range of them with --seeds")
    return _tell(asked.seed) if asked.seed is not None else _search(asked.seeds)


def _seeds(word: str) -> range:
    first, _, last = word.partition("-")
    return range(int(first), int(last or first) + 1)


def _tell(seed: int) -> int:
    told = simulate(seed, tell=True)
    print(f"seed {seed}: {told.scenario}")
    print("\n".join(told.story))
    print(f"\nbroken {told.broken}" if told.broken else "\nno law was broken")
    return 1 if told.broken else 0


def _search(seeds: range) -> int:
    reached: Counter[str] = Counter()
    broken = 0
    for seed in seeds:
        told = simulate(seed)
        reached += told.reached
        if told.broken:
            broken += 1
            print(f"seed {seed} ({told.scenario}) broken {told.broken}", flush=True)
            print(f"  its story: {replay_command(seed)}", flush=True)
    for what, times in sorted(reached.items()):
        print(f"{times:8d}  {what}")
    print(f"{len(seeds)} seeds, {broken} of them broken")
    return 1 if broken else 0
