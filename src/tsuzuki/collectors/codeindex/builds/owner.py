"""The process that owns a running build, and whether it still exists."""

import os
import socket
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from tsuzuki.collectors.codeindex.builds.job import BuildJob, BuildStatus
from tsuzuki.collectors.codeindex.moments import iso
from tsuzuki.collectors.codeindex.queries.builds import BuildOwner, StoredBuild

HEARTBEAT_SECONDS_MAX = 60.0
"""An owner that was silent for longer is taken over, even if its process is there: its token fences it."""

_ours: set[str] = set()


def this_process() -> BuildOwner:
    pid = os.getpid()
    return BuildOwner(pid=pid, start=_start_of(pid) or "", host=socket.gethostname())


def hold(build_id: str) -> None:
    """This process works on the build."""
    _ours.add(build_id)


def release(build_id: str) -> None:
    _ours.discard(build_id)


def is_alive(stored: StoredBuild, *, now_ns: int) -> bool:
    """Whether the owner of a running build can still be at work on it."""
    if (now_ns - stored.heartbeat_ns) / 1e9 > HEARTBEAT_SECONDS_MAX:
        return False
    owner = stored.owner
    if owner.host != socket.gethostname():
        return True
    if owner.pid == os.getpid() and owner.start == (_start_of(owner.pid) or ""):
        return stored.job.id in _ours
    return _is_running(owner)


def as_died(stored: StoredBuild) -> BuildJob:
    """The running build of an owner that is not alive: it failed at its last heartbeat."""
    return replace(
        stored.job,
        status=BuildStatus.FAILED,
        error="the build process died; the next build continues from here",
        failed_at=iso(datetime.fromtimestamp(stored.heartbeat_ns / 1e9, UTC)),
    )


def _is_running(owner: BuildOwner) -> bool:
    try:
        os.kill(owner.pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # it exists, and is another user's
    start = _start_of(owner.pid)
    return start is None or start == owner.start


def _start_of(pid: int) -> str | None:
    """When a process started, with the boot it started in; empty for one that has ended and was not reaped.
    None where there is no /proc."""
    try:
        boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
        text = Path(f"/proc/{pid}/stat").read_text("utf-8", errors="replace")
    except OSError:
        return None
    fields = text.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else f"{boot}:{fields[19]}"
