"""Draw mutants, run each against the tests that reach it, and report."""

import argparse
import random
import secrets
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from tools.mutants.mutations import Mutant, mutants_of
from tools.mutants.reach import Reach, reach_of
from tools.mutants.trees import FOLDER, made

CORE = ("model", "store", "engine", "services")
LEFT_OUT = ("migrations", "versions")
TREES = 2
SECONDS_MAX = 120.0
"""Time limit for the tests of one mutant, by their duration without it."""

FAILED, NOT_FOUND = 1, 4


@dataclass(frozen=True, kw_only=True)
class Verdict:
    mutant: Mutant
    is_killed: bool
    by: str


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tools.mutants", description=__doc__)
    parser.add_argument("--number", type=int, default=60, help="number of mutants (default: 60)")
    parser.add_argument(
        "--seed", type=int, help="seed that selects the mutants (default: random, printed)"
    )
    options = parser.parse_args(words)
    seed = secrets.randbelow(1_000_000) if options.seed is None else options.seed
    trees = [made(number) for number in range(TREES)]
    drawn = draw(seed, options.number, trees[0])
    _tell(
        f"seed {seed}: {len(drawn)} mutants of HEAD; first the whole suite, to see what reaches them"
    )
    reach = reach_of(drawn, trees[0], FOLDER / "reach")
    verdicts = []
    for verdict in _judged(drawn, reach, trees):
        verdicts.append(verdict)
        _tell(_line(verdict, trees[0]))
    _tell(report(verdicts))
    return 0


def draw(seed: int, number: int, tree: Path) -> list[Mutant]:
    """Half of them in the core, half outside, and of each kind about as many."""
    chance = random.Random(seed)  # noqa: S311 -- no secret
    groups: dict[bool, dict[str, list[Mutant]]] = {True: {}, False: {}}
    for file in sorted((tree / "src" / "tsuzuki").rglob("*.py")):
        if not any(part in LEFT_OUT for part in file.parts):
            path = file.relative_to(tree)
            for mutant in mutants_of(path, file.read_bytes()):
                groups[area_of(path) in CORE].setdefault(mutant.kind, []).append(mutant)
    return [
        kinds[kind].pop(chance.randrange(len(kinds[kind])))
        for is_core, kinds in groups.items()
        for kind in chance.choices(sorted(kinds), k=(number + is_core) // 2)
    ]


def area_of(path: Path) -> str:
    """The package of `src/tsuzuki`."""
    return path.parts[2].removesuffix(".py")


def tests_for(mutant: Mutant, number: int, reach: Reach) -> list[str]:
    """Tests that reach the changed line, nearest folders and fastest tests first, within the time limit."""
    names = sorted(
        reach.tests.get(number, ()),
        key=lambda name: (-_nearness(mutant.path, name), reach.seconds[name]),
    )
    left, chosen = SECONDS_MAX, []
    for name in names:
        if reach.seconds[name] <= left:
            left -= reach.seconds[name]
            chosen.append(name)
    return chosen


def _nearness(path: Path, test: str) -> int:
    """Number of folders that the module and the test share."""
    shared = 0
    for one, other in zip(path.parts[2:], test.partition("::")[0].split("/")[1:], strict=False):
        if one.removesuffix(".py") != other.removesuffix(".py").removeprefix("test_"):
            break
        shared += 1
    return shared


def _judged(mutants: Sequence[Mutant], reach: Reach, trees: Iterable[Path]) -> Iterator[Verdict]:
    free: SimpleQueue[Path] = SimpleQueue()
    for tree in trees:
        free.put(tree)

    def judge(number: int) -> Verdict:
        tree = free.get()
        try:
            return _verdict(mutants[number], tests_for(mutants[number], number, reach), tree)
        finally:
            free.put(tree)

    with ThreadPoolExecutor(TREES) as pool:
        yield from pool.map(judge, range(len(mutants)))


def _verdict(mutant: Mutant, tests: Sequence[str], tree: Path) -> Verdict:
    if not tests:
        return Verdict(mutant=mutant, is_killed=False, by="no test reaches it")
    file = tree / mutant.path
    source = file.read_bytes()
    names = tree / ".cache" / "mutant-tests.txt"
    names.parent.mkdir(exist_ok=True)
    names.write_text("\n".join(tests), encoding="utf-8")
    words = f"-m pytest -x -q -n 0 --in-order -p no:cacheprovider @{names}"
    try:
        file.write_bytes(mutant.applied(source))
        done = subprocess.run(  # noqa: S603 -- our own tests
            [str(tree / ".venv/bin/python"), *words.split()],
            cwd=tree,
            capture_output=True,
            text=True,
            check=False,
            timeout=3 * SECONDS_MAX,
        )
    except subprocess.TimeoutExpired:
        return Verdict(mutant=mutant, is_killed=True, by="it hangs")
    finally:
        file.write_bytes(source)
    if done.returncode == NOT_FOUND and "not found:" in done.stderr:
        raise LookupError(done.stderr)
    failed = [line for line in done.stdout.splitlines() if line.startswith(("FAILED ", "ERROR "))]
    by = failed[0][:160] if failed else f"{len(tests)} tests pass"
    return Verdict(mutant=mutant, is_killed=done.returncode != 0, by=by)


def _line(verdict: Verdict, tree: Path) -> str:
    mutant = verdict.mutant
    word = "killed  " if verdict.is_killed else "SURVIVED"
    told = mutant.told((tree / mutant.path).read_bytes())
    return f"{word} {mutant.path}:{mutant.line} {told}\n         {verdict.by}"


def report(verdicts: Iterable[Verdict]) -> str:
    """Killed of all, by area."""
    killed: Counter[str] = Counter()
    drawn: Counter[str] = Counter()
    for verdict in verdicts:
        area = area_of(verdict.mutant.path)
        for name in (area, "core" if area in CORE else "outside", "all"):
            killed[name] += verdict.is_killed
            drawn[name] += 1
    places = [*sorted(drawn.keys() - {"core", "outside", "all"}), "core", "outside", "all"]
    return "\n".join(
        f"{name:12} {killed[name]:3} of {drawn[name]:3}  {killed[name] / drawn[name]:4.0%}"
        for name in places
        if drawn[name]
    )


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
