"""One build per tree, whichever process asks; a killed one leaves a valid index, and the next does the rest."""

import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from pathlib import Path

import pytest

from collectors.codeindex.conftest import built
from tsuzuki.collectors.codeindex.builds import builder as build_module
from tsuzuki.collectors.codeindex.builds import owner
from tsuzuki.collectors.codeindex.builds.claim import claim_build
from tsuzuki.collectors.codeindex.builds.job import BuildJob, BuildProgress, BuildStatus
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE, IndexFile
from tsuzuki.collectors.codeindex.moments import iso, nanoseconds
from tsuzuki.collectors.codeindex.queries import builds as build_rows
from tsuzuki.collectors.codeindex.queries.builds import BuildOwner
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.collectors.codeindex.tree.scan import Scan, scan_tree
from tsuzuki.model.clock import ManualClock, SystemClock
from tsuzuki.model.errors import Conflict, Fenced

STOP_AFTER_FIRST_COMMIT = """
import pathlib, sys, threading
from tsuzuki.collectors.codeindex.builds import builder
from tsuzuki.collectors.codeindex.service.builds import Builds
builder.COMMIT_FILES = 10
committed = builder.Builder._commit
def commit_then_stop(self):
    committed(self)
    if self._updated_files:
        print(self._updated_files, flush=True)
        threading.Event().wait()
builder.Builder._commit = commit_then_stop
builds = Builds(workers=1)
started = builds.start(pathlib.Path(sys.argv[1]))
builds.jobs.wait(started.id, 600)
"""
BUILD_AND_TELL = """
import pathlib, sys
from tsuzuki.collectors.codeindex.service.builds import Builds
builds = Builds(workers=1)
root = pathlib.Path(sys.argv[1])
sys.stdin.readline()
started = builds.start(root)
print(started.id, started.is_new, flush=True)
while (job := builds.job(root, started.id)) and job.status == "running":
    builds.jobs.wait(started.id, 0.05)
print(job.status if job else None, flush=True)
"""


@pytest.fixture
def large_tree(tree: Path) -> Path:
    for number in range(200):
        (tree / f"module_{number:03}.py").write_text(f"def function_{number}():\n    pass\n")
    return tree


def process(program: str, root: Path, folder: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-c", program, str(root)],
        env={**os.environ, FOLDER_VARIABLE: str(folder)},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )


def test_a_race_of_starts_gives_one_id(
    builds: Builds, tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    all_started = threading.Event()

    def scan_later(root: Path, **_options: object) -> Scan:
        all_started.wait(120)
        return scan_tree(root)

    monkeypatch.setattr(build_module, "scan_tree", scan_later)
    with ThreadPoolExecutor(8) as threads:
        started = list(threads.map(lambda _: builds.start(tree), range(8)))
    all_started.set()
    assert len({one.id for one in started}) == 1
    assert [one.is_new for one in started].count(True) == 1
    job = builds.jobs.wait(started[0].id, 60)
    assert job is not None
    assert job.status == "completed"


def test_two_processes_build_one_tree_once(large_tree: Path, index_folder: Path) -> None:
    both = [process(BUILD_AND_TELL, large_tree, index_folder) for _ in range(2)]
    for one in both:
        assert one.stdin is not None
        one.stdin.write("go\n")
        one.stdin.flush()
    told = [one.communicate(timeout=100)[0].split() for one in both]
    assert [words[-1] for words in told] == ["completed", "completed"]
    ids = {words[0] for words in told if words[1] == "True"}
    assert {words[0] for words in told} == ids


def test_a_killed_build_keeps_a_valid_index_and_the_next_does_only_the_rest(
    builds: Builds, large_tree: Path, index_folder: Path
) -> None:
    victim = process(STOP_AFTER_FIRST_COMMIT, large_tree, index_folder)
    assert victim.stdout is not None
    stored = int(victim.stdout.readline())
    running = builds.status(large_tree)
    assert running.state == "building"
    assert running.job is not None
    assert 0 < running.job.progress.processed < running.job.progress.total
    assert not builds.start(large_tree).is_new
    with pytest.raises(Conflict) as refused:
        builds.remove(builds.find(str(large_tree)))
    assert refused.value.specific_code == "build_running"
    os.kill(victim.pid, signal.SIGKILL)
    victim.communicate()
    died = builds.status(large_tree)
    assert died.state == "incomplete"
    assert died.job is not None
    assert (died.job.status, died.job.id) == ("failed", running.job.id)
    assert "died" in str(died.job.error)
    with open_index(large_tree, index_folder) as index:
        assert index.connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert build_rows.read(index.connection) is not None
    job = built(builds, large_tree)
    assert job.result is not None
    assert job.result.updated_files == 203 - stored
    assert builds.status(large_tree).state == "ready"


def test_the_writer_that_was_taken_over_writes_nothing(
    builds: Builds, tree: Path, index_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scan_and_lose(root: Path, **_options: object) -> Scan:
        found = scan_tree(root)
        with open_index(tree, index_folder) as index, index.transaction(lambda _: True) as writer:
            build_rows.revoke(writer)
        return found

    monkeypatch.setattr(build_module, "scan_tree", scan_and_lose)
    job = built(builds, tree)
    assert job.status == "failed"
    assert "another process" in str(job.error)
    with open_index(tree, index_folder) as index:
        assert index.connection.execute("SELECT count(*) FROM files").fetchone() == (0,)


def claimed_by(
    index: IndexFile, who: BuildOwner, *, age_seconds: float = 0, now: datetime | None = None
) -> str:
    """A build that is under way in a process of that description."""
    now = now or SystemClock().now()
    job = BuildJob(
        id="build-1-aaaaaa",
        status=BuildStatus.RUNNING,
        progress=BuildProgress(),
        started_at=iso(now),
    )
    with index.transaction(lambda _: True) as connection:
        build_rows.claim(
            connection,
            seen_token=build_rows.token(connection),
            job=job,
            owner=who,
            now_ns=nanoseconds(now) - int(age_seconds * 1e9),
        )
    return job.id


@pytest.mark.parametrize("who", ["dead pid", "reused pid", "silent", "silent host", "lost thread"])
def test_a_dead_owner_is_taken_over(tree: Path, index_folder: Path, who: str) -> None:
    us = owner.this_process()
    init = BuildOwner(pid=1, start=owner._start_of(1) or "", host=us.host)
    ended = subprocess.Popen(["true"])
    ended.wait()
    described = {
        "dead pid": (BuildOwner(pid=ended.pid, start="x", host=us.host), 0.0),
        "reused pid": (BuildOwner(pid=1, start="another boot:1", host=us.host), 0.0),
        "silent": (init, 61.0),
        "silent host": (BuildOwner(pid=1, start="", host="elsewhere.example"), 61.0),
        "lost thread": (us, 0.0),
    }
    with IndexFile.open(tree, folder=index_folder) as index:
        claimed_by(index, *described[who][:1], age_seconds=described[who][1])
        taken = claim_build(index, "build-2-bbbbbb", SystemClock())
        owner.release("build-2-bbbbbb")
        assert not isinstance(taken, BuildJob)
        assert taken.token == 2
        with pytest.raises(Fenced), index.transaction(lambda c: build_rows.has_token(c, 1)):
            pass


@pytest.mark.parametrize("who", ["live pid", "other host"])
def test_a_live_owner_is_not(tree: Path, index_folder: Path, who: str) -> None:
    us = owner.this_process()
    live = BuildOwner(pid=os.getppid(), start=owner._start_of(os.getppid()) or "", host=us.host)
    described = {
        "live pid": live,
        "other host": BuildOwner(pid=1, start="", host="elsewhere.example"),
    }
    with IndexFile.open(tree, folder=index_folder) as index:
        job_id = claimed_by(index, described[who], age_seconds=30)
        running = claim_build(index, "build-2-bbbbbb", SystemClock())
    assert isinstance(running, BuildJob)
    assert running.id == job_id


def test_other_processes_remember_ended_builds_for_five_minutes(
    tree: Path, index_folder: Path, clock: ManualClock
) -> None:
    environ = {FOLDER_VARIABLE: str(index_folder)}
    builds = Builds(environ=environ, workers=1, clock=clock)
    first = built(builds, tree)
    clock.advance(100)
    second = built(builds, tree)
    other = Builds(environ=environ, clock=clock)
    assert (other.job(tree, first.id), other.job(tree, second.id)) == (first, second)
    clock.advance(199.9)
    assert other.job(tree, first.id) == first
    clock.advance(0.1)
    assert (other.job(tree, first.id), other.job(tree, second.id)) == (None, second)
    clock.advance(100)
    assert other.job(tree, second.id) is None
    status = other.status(tree)
    assert (status.job, status.stats is None) == (None, False)


def test_ended_builds_are_removed_from_the_index_file_by_age_and_number(
    tree: Path, index_folder: Path, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def remembered() -> list[str]:
        with open_index(tree, index_folder) as index:
            rows = index.connection.execute("SELECT id FROM ended_builds ORDER BY ended_at_ns")
            return [job_id for (job_id,) in rows]

    monkeypatch.setattr(build_rows, "ENDED_JOBS_MAX", 2)
    builds = Builds(environ={FOLDER_VARIABLE: str(index_folder)}, workers=1, clock=clock)
    ids = []
    for _ in range(3):
        clock.advance(1)
        ids.append(built(builds, tree).id)
    assert remembered() == ids[1:]
    clock.advance(299)
    last = built(builds, tree)
    assert remembered() == [ids[2], last.id]
    clock.advance(300)
    assert remembered() == [ids[2], last.id]
    newest = built(builds, tree)
    assert remembered() == [newest.id]


def test_a_build_that_was_taken_over_is_remembered_as_failed(
    tree: Path, index_folder: Path, clock: ManualClock
) -> None:
    builds = Builds(environ={FOLDER_VARIABLE: str(index_folder)}, workers=1, clock=clock)
    gone = BuildOwner(pid=1, start="another boot:1", host=owner.this_process().host)
    with IndexFile.open(tree, folder=index_folder) as index:
        job_id = claimed_by(index, gone, now=clock.now())
    clock.advance(10)
    before = builds.job(tree, job_id)
    assert built(builds, tree).id != job_id
    assert before is not None
    assert before.status == "failed"
    assert builds.job(tree, job_id) == before
    clock.advance(290)
    assert builds.job(tree, job_id) is None


def test_a_build_whose_process_died_failed_at_its_last_heartbeat_and_is_forgotten(
    tree: Path, index_folder: Path, clock: ManualClock
) -> None:
    builds = Builds(environ={FOLDER_VARIABLE: str(index_folder)}, clock=clock)
    gone = BuildOwner(pid=1, start="another boot:1", host=owner.this_process().host)
    with IndexFile.open(tree, folder=index_folder) as index:
        job_id = claimed_by(index, gone, now=clock.now())
    clock.advance(100)
    first = builds.job(tree, job_id)
    clock.advance(199)
    assert first is not None
    assert first == builds.job(tree, job_id)
    assert (first.status, first.failed_at) == ("failed", "2026-11-17T12:00:00.000Z")
    clock.advance(1)
    assert builds.job(tree, job_id) is None
    assert builds.status(tree).job is None


def test_a_watcher_of_a_second_process_takes_no_id_that_was_used(
    tree: Path, index_folder: Path, clock: ManualClock
) -> None:
    ids = []
    for _ in range(2):
        builds = Builds(environ={FOLDER_VARIABLE: str(index_folder)}, clock=clock, workers=1)
        started = builds.start_for_watcher(tree, None)
        assert builds.jobs.wait(started.id, 60)
        ids.append(started.id)
    now_ms = int(clock.now().timestamp() * 1000)
    assert ids == [f"watcher-{now_ms}", f"watcher-{now_ms + 1}"]


def test_every_process_tells_the_same_of_a_build_from_its_start_to_its_end(
    builds: Builds, tree: Path, index_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def scan_when_told(root: Path, **_options: object) -> Scan:
        go_on.wait(120)
        return scan_tree(root)

    monkeypatch.setattr(build_module, "scan_tree", scan_when_told)
    other = Builds(environ={FOLDER_VARIABLE: str(index_folder)})
    started = builds.start(tree)
    running = builds.job(tree, started.id)
    assert running == other.job(tree, started.id)
    go_on.set()
    ended = builds.jobs.wait(started.id, 60)
    assert running is not None
    assert ended is not None
    assert ended == other.job(tree, started.id)
    assert ended.started_at == running.started_at


def test_a_detached_build_goes_on_alone(builds: Builds, large_tree: Path) -> None:
    started = builds.start_detached(large_tree)
    assert started.is_new
    pause = threading.Event()
    while (job := builds.job(large_tree, started.id)) and job.status == "running":
        pause.wait(0.05)
    assert job is not None
    assert (job.status, job.progress.processed) == ("completed", 203)


def open_index(root: Path, folder: Path) -> IndexFile:
    index = IndexFile.open_existing(root, folder=folder)
    assert index is not None
    return index
