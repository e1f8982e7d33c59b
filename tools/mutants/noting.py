"""A pytest plugin for one run of the suite: tells the probes which test runs, and records the duration of tests that
passed."""

import os
import time
from collections.abc import Iterator

import pytest

from tsuzuki import reached

_failed: set[str] = set()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    reached.test = item.nodeid
    (reached.FOLDER / f"test.{os.getpid()}").write_text(item.nodeid)
    started = time.perf_counter()
    result = yield
    if item.nodeid not in _failed:
        with (reached.FOLDER / f"passed.{os.getpid()}").open("a") as file:
            file.write(f"{time.perf_counter() - started:.3f}\t{item.nodeid}\n")
    return result


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    if not report.passed:
        _failed.add(report.nodeid)
