"""Plugin for running the suite: order drawn from a seed, one database where two hardly differ, limited time.

The seed comes from the commit, so a run is repeated by running the same commit again, and the next commit draws anew.
"""

import gc
import random
import subprocess
import time
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

ON_BOTH = (
    "tests/collectors/conformance/",
    "tests/collectors/kit/",
    "tests/engine/",
    "tests/processes/",
    "tests/store/",
    "tests/library/",
    "tests/test_library.py",
)
"""Here and in the folders `queries` of collectors are SQL, transactions and locks: the two databases may differ."""


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("suite")
    group.addoption(
        "--seed", type=int, help="draws order, database and simulation seeds (default: from HEAD)"
    )
    group.addoption(
        "--one-database",
        action="store_true",
        help="run tests on one of the two databases, drawn by the seed, where they hardly differ",
    )
    group.addoption("--in-order", action="store_true", help="run tests in the order they are given")
    group.addoption(
        "--stop-after", type=float, metavar="SECONDS", help="start no test after this time"
    )


_STARTED = pytest.StashKey[float]()


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config: pytest.Config) -> None:
    config.stash[_STARTED] = time.monotonic()
    if config.option.seed is None:
        config.option.seed = seed_of_commit()  # test processes of xdist get the options


def seed_of_commit() -> int:
    """Seed derived from the current commit, or 0 without git."""
    words = ["git", "-C", str(ROOT), "rev-parse", "HEAD"]
    try:
        found = subprocess.run(words, capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return 0
    return int(found.stdout[:6], 16)


@pytest.hookimpl(trylast=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    _tell_seed(session.config)


def pytest_terminal_summary(exitstatus: int, config: pytest.Config) -> None:
    if is_over(config):
        _tell(config, f"No test was started after {config.option.stop_after:g} seconds.")
    if exitstatus == pytest.ExitCode.TESTS_FAILED:
        _tell_seed(config)


def _tell_seed(config: pytest.Config) -> None:
    seed = config.option.seed
    _tell(config, f"Seed {seed}. Repeat: make test SEED={seed}, or pytest --seed {seed}.")


def _tell(config: pytest.Config, line: str) -> None:
    reporter = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and not hasattr(config, "workerinput"):
        reporter.write_line(line)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect without searching for garbage: modules and tests stay until the end, and are not searched later either.
    That took a fifth of the processor time of collecting, and more than a twentieth of that of running tests."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    seed: int = config.option.seed
    for item in items:
        if "one_chromium" in getattr(item, "fixturenames", ()):
            item.add_marker("slow")
    if config.option.one_database:
        left_out = twins_left_out(items, seed)
        config.hook.pytest_deselected(items=[item for item in items if item in left_out])
        items[:] = [item for item in items if item not in left_out]
    if not config.option.in_order:
        items[:] = shuffled(items, seed)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> bool | None:
    """A test that comes too late is left out: neither passed nor skipped."""
    return True if is_over(item.config) else None


def is_over(config: pytest.Config) -> bool:
    seconds: float | None = config.option.stop_after
    return seconds is not None and time.monotonic() - config.stash[_STARTED] > seconds


def shuffled(items: Iterable[pytest.Item], seed: int) -> list[pytest.Item]:
    """Modules in an order of their own, and the tests within each: what a module has set up is set up once."""
    chance = random.Random(seed)
    modules: dict[Path, list[pytest.Item]] = {}
    for item in items:
        modules.setdefault(item.path, []).append(item)
    groups = [*modules.values()]
    chance.shuffle(groups)
    for group in groups:
        chance.shuffle(group)
    return [item for group in groups for item in group]


def twins_left_out(items: Iterable[pytest.Item], seed: int) -> set[pytest.Item]:
    """Tests that need not run on both databases, on the database that was not drawn."""
    twins: dict[str, list[pytest.Item]] = {}
    for item in items:
        callspec = getattr(item, "callspec", None)
        dialect = callspec and callspec.params.get("dialect")
        if dialect and not needs_both(item):
            twins.setdefault(item.nodeid.replace(dialect, "*"), []).append(item)
    return {
        random.Random(f"{seed} {name}").choice(pair)
        for name, pair in twins.items()
        if len(pair) == 2
    }


def needs_both(item: pytest.Item) -> bool:
    return (
        item.nodeid.startswith(ON_BOTH)
        or "/queries/" in item.nodeid
        or item.get_closest_marker("both_databases") is not None
    )


@pytest.fixture(scope="session")
def suite_seed(pytestconfig: pytest.Config) -> int:
    """The seed of this run of the suite."""
    return int(pytestconfig.option.seed)
