"""Claiming the index file for a build: one build per tree at a time, across processes."""

import sqlite3

from tsuzuki.collectors.codeindex import owner
from tsuzuki.collectors.codeindex.build import ClaimedBuild
from tsuzuki.collectors.codeindex.build_job import BuildJob, BuildProgress, BuildStatus
from tsuzuki.collectors.codeindex.index_file import IndexFile
from tsuzuki.collectors.codeindex.moments import iso, nanoseconds
from tsuzuki.collectors.codeindex.queries import builds
from tsuzuki.model.clock import Clock


def claim_build(index: IndexFile, build_id: str, clock: Clock) -> ClaimedBuild | BuildJob:
    """Start a build, or the running one of this tree. The build of a dead owner is taken over: its row
    becomes ours, and its token is worth nothing from then on."""
    now = clock.now()
    job = BuildJob(
        id=build_id, status=BuildStatus.RUNNING, progress=BuildProgress(), started_at=iso(now)
    )
    with index.transaction(_always) as connection:
        stored = builds.read(connection)
        if stored and stored.is_running and owner.is_alive(stored, now_ns=nanoseconds(now)):
            return stored.job
        token = builds.claim(
            connection,
            seen_token=builds.token(connection),
            job=job,
            owner=owner.this_process(),
            now_ns=nanoseconds(now),
        )
        owner.hold(build_id)
    if token is None:
        raise AssertionError("the row of builds changed under the write lock")
    return ClaimedBuild(id=build_id, token=token, started_at=job.started_at)


def _always(_connection: sqlite3.Connection) -> bool:
    return True
