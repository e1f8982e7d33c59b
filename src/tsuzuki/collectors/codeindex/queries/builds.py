"""The row of the latest build: who builds, how far it is, how it ended; and the builds that ended before it. Other
processes answer from them."""

import json
import sqlite3
from dataclasses import dataclass

from tsuzuki.collectors.codeindex.builds.job import (
    ENDED_JOB_SECONDS,
    ENDED_JOBS_MAX,
    BuildJob,
    BuildProgress,
    BuildResult,
    BuildStatus,
)


@dataclass(frozen=True, kw_only=True)
class BuildOwner:
    """A process that builds. `start` tells it from another that got the same pid later."""

    pid: int
    start: str
    host: str


@dataclass(frozen=True, kw_only=True)
class StoredBuild:
    """The row, with its owner while the build runs."""

    token: int
    job: BuildJob
    owner: BuildOwner
    heartbeat_ns: int
    ended_at_ns: int | None

    @property
    def is_running(self) -> bool:
        return self.job.status is BuildStatus.RUNNING


def read(connection: sqlite3.Connection) -> StoredBuild | None:
    """None before the first build."""
    row = connection.execute(
        "SELECT token, id, status, processed, total, rate, result, error, started_at, ended_at,"
        " ended_at_ns, owner_pid, owner_start, owner_host, heartbeat_ns"
        " FROM builds WHERE id IS NOT NULL"
    ).fetchone()
    if row is None:
        return None
    token, number, status, processed, total, rate, result, error, started, ended = row[:10]
    return StoredBuild(
        token=token,
        job=BuildJob(
            id=number,
            status=BuildStatus(status),
            progress=BuildProgress(processed=processed, total=total, rate=rate),
            started_at=started,
            result=BuildResult.of_json(json.loads(result)) if result else None,
            error=error,
            completed_at=ended if status == BuildStatus.COMPLETED else None,
            failed_at=ended if status == BuildStatus.FAILED else None,
        ),
        ended_at_ns=row[10],
        owner=BuildOwner(pid=row[11], start=row[12], host=row[13]),
        heartbeat_ns=row[14],
    )


def token(connection: sqlite3.Connection) -> int:
    (found,) = connection.execute("SELECT token FROM builds").fetchone()
    return int(found)


def has_token(connection: sqlite3.Connection, mine: int) -> bool:
    """The fence of a build: no other has claimed the file since."""
    found = connection.execute(
        "SELECT 1 FROM builds WHERE token = ? AND status = 'running'", (mine,)
    )
    return found.fetchone() is not None


def is_idle(connection: sqlite3.Connection) -> bool:
    """Whether no build is running, which is when a reader may store a file that it has parsed."""
    found = connection.execute("SELECT 1 FROM builds WHERE status = 'running'")
    return found.fetchone() is None


def claim(
    connection: sqlite3.Connection,
    *,
    seen_token: int,
    job: BuildJob,
    owner: BuildOwner,
    now_ns: int,
) -> int | None:
    """Start a build if the row is as it was seen; its token, or None if another was first."""
    row = connection.execute(
        "UPDATE builds SET token = token + 1, id = ?, status = 'running', processed = ?, total = ?,"
        " rate = 0, result = NULL, error = NULL, started_at = ?, ended_at = NULL,"
        " ended_at_ns = NULL, owner_pid = ?, owner_start = ?, owner_host = ?, heartbeat_ns = ?"
        " WHERE token = ? RETURNING token",
        (
            job.id,
            job.progress.processed,
            job.progress.total,
            job.started_at,
            owner.pid,
            owner.start,
            owner.host,
            now_ns,
            seen_token,
        ),
    ).fetchone()
    return int(row[0]) if row else None


def report(connection: sqlite3.Connection, progress: BuildProgress, *, now_ns: int) -> None:
    """Progress and heartbeat of the running build."""
    connection.execute(
        "UPDATE builds SET processed = ?, total = ?, rate = ?, heartbeat_ns = ?",
        (progress.processed, progress.total, progress.rate, now_ns),
    )


def end(connection: sqlite3.Connection, job: BuildJob, *, now_ns: int) -> None:
    """Store how the running build ended, and remember it."""
    connection.execute(
        "UPDATE builds SET status = ?, processed = ?, total = ?, rate = ?, result = ?, error = ?,"
        " ended_at = ?, ended_at_ns = ?, heartbeat_ns = ?",
        (
            job.status,
            job.progress.processed,
            job.progress.total,
            job.progress.rate,
            json.dumps(job.result.as_json()) if job.result else None,
            job.error,
            job.completed_at or job.failed_at,
            now_ns,
            now_ns,
        ),
    )
    remember(connection, job, ended_at_ns=now_ns)
    forget_old(connection, now_ns=now_ns)


def remember(connection: sqlite3.Connection, job: BuildJob, *, ended_at_ns: int) -> None:
    """Keep an ended build for `ENDED_JOB_SECONDS`, whatever build starts next."""
    connection.execute(
        "INSERT OR REPLACE INTO ended_builds (id, ended_at_ns, job) VALUES (?, ?, ?)",
        (job.id, ended_at_ns, json.dumps(job.as_json())),
    )


def forget_old(connection: sqlite3.Connection, *, now_ns: int) -> None:
    """Remove the builds that ended too long ago, and the oldest beyond `ENDED_JOBS_MAX`."""
    connection.execute(
        "DELETE FROM ended_builds WHERE ended_at_ns <= ? OR id NOT IN"
        " (SELECT id FROM ended_builds ORDER BY ended_at_ns DESC LIMIT ?)",
        (now_ns - int(ENDED_JOB_SECONDS * 1e9), ENDED_JOBS_MAX),
    )


def find_ended(connection: sqlite3.Connection, job_id: str, *, now_ns: int) -> BuildJob | None:
    """A build that ended in the last `ENDED_JOB_SECONDS`."""
    row = connection.execute(
        "SELECT job FROM ended_builds WHERE id = ? AND ended_at_ns > ?",
        (job_id, now_ns - int(ENDED_JOB_SECONDS * 1e9)),
    ).fetchone()
    return BuildJob.of_json(json.loads(row[0])) if row else None


def revoke(connection: sqlite3.Connection) -> None:
    """Fence every earlier claim, as when the file is about to be removed."""
    connection.execute("UPDATE builds SET token = token + 1")
