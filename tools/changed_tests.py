"""Prints the test modules that a change can break, the nearest first: `python -m tools.changed_tests --base main`.

A test module is nearer the fewer files its imports pass on the way to a changed file. What is not Python is used by the
modules that name it, and by those beside it.
"""

import argparse
import subprocess
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from tools.import_graph import ROOT, Users, by_distance, users_of_files

EVERYTHING = frozenset({"pyproject.toml", "requirements/dev.txt"})
"""Every test depends on these."""

MODULES_MAX = 120
"""Maximum number of modules; more would not finish in three minutes, including collection."""


def main(words: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tools.changed_tests", description=__doc__)
    parser.add_argument(
        "--base", help="revision to compare with (default: newest commit also on origin/main)"
    )
    base = parser.parse_args(words).base or _where_main_began()
    changed = changed_files(base)
    found = test_modules(changed, users_of_files())
    for path in found[:MODULES_MAX]:
        sys.stdout.write(f"{path.relative_to(ROOT)}\n")
    sys.stderr.write(
        f"{len(changed)} files differ from {base}; {len(found)} test modules use them, "
        f"and the nearest {min(len(found), MODULES_MAX)} are run\n"
    )
    for path in changed:
        if str(path.relative_to(ROOT)) in EVERYTHING:
            sys.stderr.write(f"{path.name} changed: only `make test` tests that\n")


def changed_files(base: str) -> list[Path]:
    """Files that differ from this revision, committed or not, and files that git does not know yet."""
    listed = _git("diff", "--name-only", base) + _git("ls-files", "--others", "--exclude-standard")
    return [ROOT / name for name in dict.fromkeys(listed)]


def test_modules(changed: Iterable[Path], users: Users) -> list[Path]:
    """The modules of tests that use a changed file, the nearest first."""
    distances = by_distance([used for path in changed for used in _entries(path)], users)
    found = [path for path in distances if path.name.startswith("test_") and path.exists()]
    return sorted(found, key=lambda path: (distances[path], path))


def _entries(path: Path) -> Iterator[Path]:
    """Modules where the search starts for a changed file: the file itself and the tests named after it."""
    yield from sorted((ROOT / "tests").rglob(f"test_{path.stem}*.py"))
    if path.suffix == ".py":
        yield path
        return
    for python in _python_files():
        if path.name in python.read_text(encoding="utf-8"):
            yield python
    yield from (one for folder in path.parents[:2] for one in sorted(folder.glob("*.py")))


def _python_files() -> list[Path]:
    return sorted(path for name in ("src", "tests") for path in (ROOT / name).rglob("*.py"))


def _where_main_began() -> str:
    """The newest commit that main of the remote has too; without a remote, the last commit."""
    try:
        return _git("merge-base", "HEAD", "origin/main")[0]
    except subprocess.CalledProcessError:
        return "HEAD"


def _git(*words: str) -> list[str]:
    command = ["git", "-C", str(ROOT), *words]
    run = subprocess.run(command, check=True, capture_output=True, text=True)  # noqa: S603 -- git
    return run.stdout.splitlines()


if __name__ == "__main__":
    main(sys.argv[1:])
