"""Which tests reach which mutant: known from one run of the suite with a probe at the statement of each mutant."""

import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tools.mutants.mutations import Mutant

PROBE = '''"""Notes which test reaches which mutant; written by tools.mutants."""

import os
from contextlib import suppress
from functools import cache
from pathlib import Path

FOLDER = Path({folder!r})
test = ""
seen = set()


def reached(number):
    name = test or of_ancestor(os.getpid())
    if (number, name) not in seen:
        seen.add((number, name))
        with suppress(OSError), (FOLDER / f"reached.{{os.getpid()}}").open("a") as file:
            file.write(f"{{number}}\\t{{name}}\\n")


@cache
def of_ancestor(pid):
    """The test whose process has started this one."""
    while pid > 1:
        if (file := FOLDER / f"test.{{pid}}").exists():
            return file.read_text()
        pid = int(Path(f"/proc/{{pid}}/stat").read_text().rpartition(")")[2].split()[1])
    return ""
'''
CALL = '__import__("tsuzuki.reached", fromlist=["reached"]).reached({number})'


@dataclass(frozen=True, kw_only=True)
class Reach:
    """The tests that reach a mutant, by its number, and how long each test takes. Tests that fail without any mutant
    are left out."""

    tests: Mapping[int, frozenset[str]]
    seconds: Mapping[str, float]


def reach_of(mutants: Sequence[Mutant], tree: Path, folder: Path) -> Reach:
    """Run the suite in this tree, and put the tree's files back."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    sources = {mutant.path: (tree / mutant.path).read_bytes() for mutant in mutants}
    module = tree / "src" / "tsuzuki" / "reached.py"
    try:
        module.write_text(PROBE.format(folder=str(folder)), encoding="utf-8")
        for path, source in sources.items():
            numbers = {i: one.line for i, one in enumerate(mutants) if one.path == path}
            (tree / path).write_text(with_probes(source.decode(), numbers), encoding="utf-8")
        _run_suite(tree)
    finally:
        for path, source in sources.items():
            (tree / path).write_bytes(source)
        module.unlink(missing_ok=True)
    return _read(folder)


def with_probes(source: str, lines: Mapping[int, int]) -> str:
    """The file with a call before each of these lines, by the number of the mutant."""
    text = source.splitlines(keepends=True)
    calls = defaultdict(list)
    for number, line in lines.items():
        place = line - 1
        while text[place].lstrip().startswith("elif "):
            place = _if_of(text, place)
        calls[place].append(CALL.format(number=number))
    for place in sorted(calls, reverse=True):
        indent = text[place][: len(text[place]) - len(text[place].lstrip())]
        text[place:place] = [f"{indent}{call}\n" for call in calls[place]]
    return "".join(text)


def _if_of(text: Sequence[str], place: int) -> int:
    indent = text[place].partition("elif ")[0]
    return next(i for i in range(place - 1, -1, -1) if text[i].startswith(f"{indent}if "))


def _run_suite(tree: Path) -> None:
    """Its failures are found in what it writes."""
    words = "-m pytest -q -n 3 --dist worksteal --one-database -p tools.mutants.noting"
    subprocess.run(  # noqa: S603 -- our own tests
        [str(tree / ".venv/bin/python"), *words.split()], cwd=tree, check=False, stdout=sys.stderr
    )


def _read(folder: Path) -> Reach:
    seconds: dict[str, float] = {}
    for file in folder.glob("passed.*"):
        for line in file.read_text(encoding="utf-8").splitlines():
            duration, _, name = line.partition("\t")
            seconds[name] = float(duration)
    tests: dict[int, set[str]] = defaultdict(set)
    for file in folder.glob("reached.*"):
        for line in file.read_text(encoding="utf-8").splitlines():
            number, _, name = line.partition("\t")
            if name in seconds:
                tests[int(number)].add(name)
    return Reach(tests={n: frozenset(names) for n, names in tests.items()}, seconds=seconds)
