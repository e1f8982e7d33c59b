"""Small enough to see whole: what is longer stands here, with the reason why it is not divided.

A new long file or function is a question to its author, not a ban: divide it where it has two ideas, or write down
why it has one.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "tsuzuki"

FILE_LINES = 400
LONG_FILES = {
    "collectors/codeindex/service/answers.py": "all questions about a tree share its checked state",
    "collectors/codeindex/watch/notifier.py": "inotify, polling and what both report are one contract",
    "engine/worker/worker.py": "the worker's tick and every move of its slots, read together",
    "library/program.py": "all that a program can ask for, with the overloads that type it, is one class",
    "services/explain.py": "one function per rule that holds a run, asked in one order",
    "services/jobs.py": "all changes of jobs go through one class, audited in one way",
    "services/runs.py": "all changes of runs go through one class, audited in one way",
    "store/jobs.py": "statements of one table and its versions",
    "store/rollups.py": "statements of one table, with the queries that fill it",
    "store/schema/tables.py": "the engine's tables, one definition after the other",
    "store/schema/takeover.py": "the checks and the changes of a table that was there before are one walk",
    "store/workers.py": "statements of one table, with the guards that they share",
    "wiring/application.py": "one property for each service, all of one shape",
}
"""Files of more than `FILE_LINES` lines, with the reason."""

FUNCTION_LINES = 50
LONG_FUNCTIONS = {
    "cli/serve/foreground.py: run_in_foreground": "the life of a process from start to end, in its order",
    "cli/serve/mcp.py: mcp": "half of it is the text of its help",
    "collectors/feeds/collect.py: _process": "the resources of one run, opened and closed together",
    "collectors/feeds/sandbox/feed_site/demo.py: _press_releases": "content, no logic",
    "config/load.py: load_configuration": "fills one record, a line for each field",
    "engine/metrics.py: __init__": "a line for each metric",
    "engine/process.py: _build": "joins one process, a line for each part",
    "wiring/engine.py: build_engine": "joins one engine, a line for each part",
}
"""Functions of more than `FUNCTION_LINES` lines, with the reason."""


def modules() -> list[Path]:
    """Without migrations, which never change once they were released."""
    return [path for path in sorted(SOURCE.rglob("*.py")) if "versions" not in path.parts]


def functions(path: Path) -> Iterator[tuple[str, int]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            lines = (node.end_lineno or node.lineno) - node.lineno + 1
            yield f"{path.relative_to(SOURCE)}: {node.name}", lines


def test_a_long_file_has_a_reason() -> None:
    lengths = {
        str(path.relative_to(SOURCE)): len(path.read_text(encoding="utf-8").splitlines())
        for path in modules()
    }
    long = {name: lines for name, lines in lengths.items() if lines > FILE_LINES}
    assert {name: lines for name, lines in long.items() if name not in LONG_FILES} == {}
    assert LONG_FILES.keys() <= lengths.keys()


def test_a_long_function_has_a_reason() -> None:
    lengths = [found for path in modules() for found in functions(path)]
    long = {name: lines for name, lines in lengths if lines > FUNCTION_LINES}
    assert {name: lines for name, lines in long.items() if name not in LONG_FUNCTIONS} == {}
    assert LONG_FUNCTIONS.keys() <= {name for name, _ in lengths}


def test_every_reason_is_written() -> None:
    assert all({**LONG_FILES, **LONG_FUNCTIONS}.values())
