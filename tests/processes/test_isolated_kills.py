"""Functions that do not stop when they are asked to, and such that crash, under a whole engine on both databases: each
comes to its own end, nothing of it is left, and its neighbours notice nothing."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.stubborn import STUBBORN, descendants, stubborn_module
from support.waiting import wait_until
from tsuzuki import Handle, Tsuzuki
from tsuzuki.services.runs import RunView

TIMEOUT_SECONDS = 60.0
NAMES = ("endless loop", "holds the GIL", "ignores SIGTERM", "leaves daemons")

NEIGHBOUR = """
import ctypes, time
from pathlib import Path

def neighbour(folder):
    while not Path(folder, "may-end").exists():
        time.sleep(0.02)
    return "unharmed"

def segfault(run):
    ctypes.string_at(0)

def grows(run):
    kept = []
    while True:
        kept.append(bytearray(b"x") * 4_000_000)
        time.sleep(0.005)
"""


@pytest.fixture
def app(database_url: str, tmp_path: Path) -> Iterator[Tsuzuki]:
    for number, name in enumerate(NAMES):
        assert name in STUBBORN
        (tmp_path / f"kill_work_{number}.py").write_text(stubborn_module(name))
    (tmp_path / "kill_neighbour.py").write_text(NEIGHBOUR)
    with Tsuzuki(database_url, environ={}, cwd=tmp_path) as app:
        app._application.settings.set("kill_grace_seconds", 0.2)
        for isolation in ("process", "thread"):
            app.define(
                isolation,
                python="kill_neighbour:neighbour",
                isolation=isolation,
                arguments={"folder": str(tmp_path)},
            )
        yield app


def define_stubborn(app: Tsuzuki, **keys: object) -> list[str]:
    names = [f"stubborn-{number}" for number in range(len(NAMES))]
    for number, name in enumerate(names):
        app.define(name, python=f"kill_work_{number}:stubborn", isolation="process", **keys)
    return names


def view(app: Tsuzuki, run: Handle[object]) -> RunView:
    return app._application.runs.get(run.id)


def supervisor_of(app: Tsuzuki, run: Handle[object]) -> int:
    """Once the function has logged its own pid and its supervisor's."""
    lines = app._application.logs
    wait_until(lambda: len(lines.tail(run.id, 2)) == 2, f"run {run.id} to begin")
    return int(lines.tail(run.id, 2)[1].body)


def check_neighbours(neighbours: list[Handle[object]], folder: Path) -> None:
    (folder / "may-end").touch()
    for one in neighbours:
        assert one.result(timeout_seconds=TIMEOUT_SECONDS) == "unharmed"


@pytest.mark.parametrize(
    ("cause", "keys", "end"),
    [("cancel", {}, "CANCELED"), ("timeout", {"timeout": 5}, "TIMED_OUT")],
)
def test_what_does_not_stop_is_killed_and_its_neighbours_go_on(
    app: Tsuzuki, tmp_path: Path, cause: str, keys: dict[str, object], end: str
) -> None:
    names = define_stubborn(app, **keys)
    with app.running(capacity=16):
        neighbours = [app.submit("process"), app.submit("thread")]
        stubborn = [app.submit(name) for name in names]
        supervisors = [supervisor_of(app, one) for one in stubborn]
        if cause == "cancel":
            for one in stubborn:
                one.cancel()
        assert {one.wait(timeout_seconds=TIMEOUT_SECONDS).state for one in stubborn} == {end}
        wait_until(lambda: not any(map(descendants, supervisors)), "nothing of them to be left")
        check_neighbours(neighbours, tmp_path)


def test_a_shutdown_leaves_nothing_of_what_does_not_stop(app: Tsuzuki) -> None:
    names = define_stubborn(app)
    with app.running(capacity=16):
        stubborn = [app.submit(name) for name in names]
        supervisors = [supervisor_of(app, one) for one in stubborn]
        app.stop(at_once=True)
        assert not any(map(descendants, supervisors))
    assert {view(app, one).run.reason for one in stubborn} == {"worker_shutdown"}


def test_a_crash_and_too_much_memory_are_retried_as_their_jobs_say(
    app: Tsuzuki, tmp_path: Path
) -> None:
    keys = {"isolation": "process", "max_retries": 1, "backoff": {"initial": "1s"}}
    app.define("segfault", python="kill_neighbour:segfault", **keys)
    app.define("grows", python="kill_neighbour:grows", memory="150M", **keys)
    with app.running(capacity=16):
        neighbours = [app.submit("process"), app.submit("thread")]
        for name, reason in (("segfault", "crashed"), ("grows", "memory_limit")):
            work = app.submit(name)
            last = work.wait(timeout_seconds=TIMEOUT_SECONDS)
            assert (last.reason, last.attempt) == (reason, 2)
            first = view(app, work)
            assert (first.run.reason, first.retried_as) == (reason, last.id)
        check_neighbours(neighbours, tmp_path)
