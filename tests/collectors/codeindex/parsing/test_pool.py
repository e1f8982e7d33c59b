"""Worker processes: all files come back, whatever crashes or hangs."""

import subprocess
from pathlib import Path

import pytest

from tsuzuki.collectors.codeindex.parsing import pool as parse_pool
from tsuzuki.collectors.codeindex.parsing.parse import ParseLimits
from tsuzuki.collectors.codeindex.parsing.parsed_file import FileOutcome, FileToParse, ParsedFile
from tsuzuki.collectors.codeindex.parsing.pool import ParsePool

CRASHING = """
import json, sys
sys.path[:] = json.loads(sys.argv[1])
import os, signal, threading
from tsuzuki.collectors.codeindex.parsing import worker
real = worker.parse_file
def parse_file(root, file, limits):
    if file.path == "crash.py":
        os.kill(os.getpid(), signal.SIGSEGV)
    if file.path == "hang.py":
        threading.Event().wait()
    return real(root, file, limits)
worker.parse_file = parse_file
worker.main()
"""


def outcomes(pool: ParsePool, files: list[FileToParse]) -> dict[str, FileOutcome]:
    parsed = [one for some in pool.parse(files) for one in some]
    assert len(parsed) == len(files)
    return {one.path: one.outcome for one in parsed if isinstance(one, ParsedFile)}


@pytest.fixture
def files(tree: Path) -> list[FileToParse]:
    for number in range(60):
        (tree / f"m{number}.py").write_text("x = 1\n")
    return [FileToParse(path=f"m{number}.py") for number in range(60)]


def test_a_file_that_crashes_or_hangs_the_parser_harms_only_itself(
    tree: Path, files: list[FileToParse], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse_pool, "_PROGRAM", CRASHING)
    monkeypatch.setattr(parse_pool, "START_SECONDS_MAX", 5.0)
    bad = ["crash.py", "hang.py"]
    for name in bad:
        (tree / name).write_text("x = 1\n")
    asked = [*files[:30], *(FileToParse(path=name) for name in bad), *files[30:]]
    limits = ParseLimits(seconds_max=0.05)
    with ParsePool(tree, limits, workers=2) as pool:
        found = outcomes(pool, asked)
    assert [name for name, one in found.items() if one is FileOutcome.FAILED] == bad
    assert len(found) == 62


def test_a_file_that_failed_before_is_never_parsed_in_this_process(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parse_pool, "_PROGRAM", CRASHING)
    (tree / "crash.py").write_text("x = 1\n")
    with ParsePool(tree, ParseLimits(), workers=1) as pool:
        found = outcomes(pool, [FileToParse(path="crash.py", has_failed=True)])
    assert found == {"crash.py": FileOutcome.FAILED}


def test_leaving_early_ends_every_process(tree: Path, files: list[FileToParse]) -> None:
    with ParsePool(tree, ParseLimits(), workers=2) as pool:
        next(iter(pool.parse(files)))
    assert all(not thread.is_alive() for thread in pool._threads)


def test_processes_that_were_started_early_are_used_and_all_end_with_the_pool(
    tree: Path, files: list[FileToParse], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []
    start = parse_pool._start_process

    def recorded() -> subprocess.Popen[bytes]:
        started.append(start())
        return started[-1]

    monkeypatch.setattr(parse_pool, "_start_process", recorded)
    with ParsePool(tree, ParseLimits(), workers=2) as pool:
        pool.start_early(len(files))
        assert len(outcomes(pool, files)) == 60
        assert len(started) == 2
        pool.start_early(len(files))
    assert len(started) == 4
    assert all(process.returncode is not None for process in started)
