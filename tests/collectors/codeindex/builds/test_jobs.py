"""Jobs in memory: they run in a thread, end once, and are forgotten five minutes after their end."""

import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from collectors.codeindex.builds.test_job import COMPLETED, FAILED, RUNNING
from support.waiting import wait_until
from tsuzuki.collectors.codeindex.builds.builder import OnProgress
from tsuzuki.collectors.codeindex.builds.job import BuildJob, BuildProgress, BuildStatus
from tsuzuki.collectors.codeindex.builds.jobs import BuildJobs
from tsuzuki.model.clock import ManualClock, SystemClock
from tsuzuki.model.errors import Unreachable

ID = COMPLETED.id


def ends_as(job: BuildJob) -> Callable[[OnProgress, Callable[[], bool]], BuildJob]:
    return lambda _on_progress, _stopping: job


@pytest.mark.parametrize("end", [COMPLETED, FAILED], ids=["completed", "failed"])
def test_a_job_that_ended_is_forgotten_after_five_minutes(
    clock: ManualClock, end: BuildJob
) -> None:
    jobs = BuildJobs(clock)
    jobs.create(RUNNING, ends_as(end))
    assert jobs.wait(ID, 10) == end
    clock.advance(299.9)
    assert jobs.get(ID) == end
    clock.advance(0.1)
    assert jobs.get(ID) is None


def test_an_ended_job_is_removed_without_being_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tsuzuki.collectors.codeindex.builds.jobs.ENDED_JOB_SECONDS", 0.05)
    jobs = BuildJobs(SystemClock())
    for number in range(3):
        job_id = f"build-{number}-abc123"
        jobs.create(replace(RUNNING, id=job_id), ends_as(replace(COMPLETED, id=job_id)))
    wait_until(lambda: not jobs._entries, "the timer removes them")
    wait_until(lambda: jobs._timer is None, "no timer is left behind")


def test_one_timer_waits_for_all_ended_jobs(clock: ManualClock) -> None:
    jobs = BuildJobs(clock)
    timer = None
    for number in range(3):
        job_id = f"build-{number}-abc123"
        jobs.create(replace(RUNNING, id=job_id), ends_as(replace(COMPLETED, id=job_id)))
        jobs.wait(job_id, 10)
        timer = timer or jobs._timer
        assert jobs._timer is timer
    assert timer is not None
    assert timer.daemon
    timer.cancel()


def test_a_running_job_is_never_forgotten_and_tells_its_progress(clock: ManualClock) -> None:
    told, go_on = threading.Event(), threading.Event()

    def work(on_progress: OnProgress, _stopping: Callable[[], bool]) -> BuildJob:
        on_progress(BuildProgress(processed=1, total=2, rate=0.5))
        told.set()
        go_on.wait(120)
        return COMPLETED

    jobs = BuildJobs(clock)
    jobs.create(RUNNING, work)
    assert told.wait(120)
    clock.advance(3600)
    running = jobs.get(ID)
    assert running is not None
    assert (running.status, running.progress.processed) == (BuildStatus.RUNNING, 1)
    go_on.set()
    assert jobs.wait(ID, 10) == COMPLETED


def test_whatever_is_raised_fails_the_job_with_what_to_do(clock: ManualClock) -> None:
    def work(_on_progress: OnProgress, _stopping: Callable[[], bool]) -> BuildJob:
        raise Unreachable("the disk is full", hint="Free some disk space.")

    jobs = BuildJobs(clock)
    jobs.create(RUNNING, work)
    job = jobs.wait(ID, 10)
    assert job is not None
    assert (job.status, job.error) == (
        BuildStatus.FAILED,
        "the disk is full. Free some disk space.",
    )
    assert job.failed_at == "2026-11-17T12:00:00.000Z"


def test_a_job_is_asked_to_stop(clock: ManualClock) -> None:
    def work(_on_progress: OnProgress, stopping: Callable[[], bool]) -> BuildJob:
        while not stopping():
            threading.Event().wait(0.001)
        return replace(FAILED, error="cancelled")

    jobs = BuildJobs(clock)
    jobs.create(RUNNING, work)
    assert jobs.cancel(ID)
    assert getattr(jobs.wait(ID, 10), "error", None) == "cancelled"
    assert not jobs.cancel(ID)
    assert not jobs.cancel("build-1-aaaaaa")


def test_an_id_is_used_once(clock: ManualClock) -> None:
    jobs = BuildJobs(clock)
    jobs.create(RUNNING, ends_as(COMPLETED))
    with pytest.raises(ValueError, match="already"):
        jobs.create(RUNNING, ends_as(COMPLETED))


def test_a_watcher_id_that_would_collide_takes_the_next_millisecond(clock: ManualClock) -> None:
    jobs = BuildJobs(clock)
    taken = [jobs.next_watcher_id(now_ms) for now_ms in (100, 100, 100, 50, 103, 200)]
    assert taken == [f"watcher-{ms}" for ms in (100, 101, 102, 103, 104, 200)]
