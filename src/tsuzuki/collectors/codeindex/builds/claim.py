"""Claiming the index file for a build: one build per tree at a time, across processes."""

import sqlite3

from tsuzuki.collectors.codeindex.builds import owner
from tsuzuki.collectors.codeindex.builds.builder import ClaimedBuild
from tsuzuki.collectors.codeindex.builds.job import BuildJob, BuildProgress, BuildStatus
from tsuzuki.collectors.codeindex.index_file import IndexFile
from tsuzuki.collectors.codeindex.moments import iso, nanoseconds
from tsuzuki.collectors.codeindex.queries import builds, files
from tsuzuki.model.clock import Clock


def claim_build(
    index: IndexFile, build_id: str, clock: Clock, *, part_files: int | None = None
) -> ClaimedBuild | BuildJob:
    """Start a build, or the running one of this tree. The build of a dead owner is taken over: its row
    becomes ours, its token is worth nothing from then on, and it is remembered as failed. Until the tree is scanned
    the total is what the index has; a build of a part has processed all but `part_files` of it."""
    now = clock.now()
    now_ns = nanoseconds(now)
    with index.transaction(_always) as connection:
        stored = builds.read(connection)
        if stored and stored.is_running:
            if owner.is_alive(stored, now_ns=now_ns):
                return stored.job
            builds.remember(connection, owner.as_died(stored), ended_at_ns=stored.heartbeat_ns)
        builds.forget_old(connection, now_ns=now_ns)
        total = files.file_count(connection)
        processed = 0 if part_files is None else max(total - part_files, 0)
        job = BuildJob(
            id=build_id,
            status=BuildStatus.RUNNING,
            progress=BuildProgress(processed=processed, total=total),
            started_at=iso(now),
        )
        token = builds.claim(
            connection,
            seen_token=builds.token(connection),
            job=job,
            owner=owner.this_process(),
            now_ns=now_ns,
        )
        owner.hold(build_id)
    if token is None:
        raise AssertionError("the row of builds changed under the write lock")
    return ClaimedBuild(job=job, token=token)


def _always(_connection: sqlite3.Connection) -> bool:
    return True
