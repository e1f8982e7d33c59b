"""`code_index_build`, `code_index_status` and `code_index_update`: builds, told as jobs."""

from pathlib import Path
from typing import Any

from tsuzuki.collectors.codeindex.service.builds import BuildJob, IndexStatus, StartedBuild
from tsuzuki.collectors.codeindex.tools.definitions import STATUS
from tsuzuki.collectors.codeindex.tools.indexes import Indexes, indexes_of
from tsuzuki.collectors.codeindex.tools.refusals import refused
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.arguments import next_call
from tsuzuki.mcp.tokens import clipped, compact_json, printable
from tsuzuki.mcp.tool import ToolCall
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import NotFound

LOOK_SECONDS = 0.1
UPDATE_WAIT_SECONDS = 10


def build(call: ToolCall) -> ToolAnswer:
    """Start a build, or name the one that runs; wait for its end if asked to."""
    return _built(call, wait_seconds=call.get("wait_seconds", 0))


def update(call: ToolCall) -> ToolAnswer:
    """The same, but wait unless told not to. Only changed files are parsed, whether they are named or not."""
    return _built(call, wait_seconds=call.get("wait_seconds", UPDATE_WAIT_SECONDS))


def _built(call: ToolCall, *, wait_seconds: float) -> ToolAnswer:
    indexes = indexes_of(call.state)
    root = indexes.tree(call).root
    with refused(call):
        started = indexes.build(
            root, paths=call.get("paths", ()), is_forced=call.get("force", False)
        )
    job = _waited(call, indexes, root, started, wait_seconds)
    told = {
        **(job.as_json() if job else {"id": started.id}),
        "already_running": not started.is_new,
        "root": str(root),
    }
    already = " (already running)" if not started.is_new else ""
    notes = [clipped(note, 200) for note in started.notes]
    next_words = f"See it with: {next_call(STATUS, {'job_id': started.id})}"
    return ToolAnswer(
        header=f"{_job_words(job) if job else started.id}{already}",
        text="\n".join([*notes, clipped(printable(f"root {root}"), call.budget), next_words]),
        structured=_clipped_job(told, call.budget),
    )


def _waited(
    call: ToolCall, indexes: Indexes, root: Path, started: StartedBuild, seconds: float
) -> BuildJob | None:
    """The job as soon as it ended, or as it is after some seconds."""
    clock = SystemClock()
    deadline = clock.monotonic() + seconds
    while True:
        job = indexes.job(root, started.id)
        if job is None or job.status != "running" or clock.monotonic() >= deadline:
            return job
        progress = job.progress
        words = f"{progress.processed} of {progress.total} files"
        call.progress.report(progress.processed, progress.total or None, words)
        if clock.wait(call.state.is_closing, LOOK_SECONDS):
            return job


def status(call: ToolCall) -> ToolAnswer:
    """The index, and the build that runs or ran in the last five minutes."""
    indexes = indexes_of(call.state)
    root = indexes.tree(call).root
    with refused(call):
        found = indexes.status(root)
        job = found.job
        if job_id := call.get("job_id"):
            job = indexes.job(root, job_id)
            if job is None:
                raise NotFound(
                    f"there is no build {job_id} of {root}",
                    hint=f"A build is remembered for five minutes after its end.\nNext: {STATUS.name} {{}}",
                    code="build_unknown",
                )
    return _within(call, found, job)


def _within(call: ToolCall, found: IndexStatus, job: BuildJob | None) -> ToolAnswer:
    """As many of the files with problems as the budget has room for."""
    problems = [
        {key: clipped(str(value), 160) for key, value in one.items()} for one in found.problems
    ]
    while True:
        answer = _status(found, job, problems, call.budget)
        if answer.fits(call.budget) or not problems:
            return answer
        problems.pop()


def _status(
    found: IndexStatus, job: BuildJob | None, problems: list[dict[str, str]], budget: int
) -> ToolAnswer:
    told = {**found.as_json(), "job": job.as_json() if job else None, "problems": problems}
    stats = found.stats
    lines = [
        clipped(printable(f"root {found.root}"), budget),
        f"build {_job_words(job)}" if job else "no build in the last five minutes",
        f"{stats.total} symbols at {stats.last_indexed_at}" if stats else "no build completed yet",
        f"files: {compact_json(dict(found.outcomes))}",
        *(clipped(f"{one['path']}: {one['outcome']}: {one['error']}", 320) for one in problems),
    ]
    return ToolAnswer(
        header=f"index {found.state}",
        text="\n".join(lines),
        structured=_clipped_job({key: told[key] for key in told if key != "index_file"}, budget),
    )


def _clipped_job(told: dict[str, Any], budget: int) -> dict[str, Any]:
    """Paths and errors may be of any length."""
    return {
        key: clipped(printable(value), budget) if isinstance(value, str) else value
        for key, value in told.items()
    }


def _job_words(job: BuildJob) -> str:
    progress = job.progress
    words = f"{job.id} {job.status}: {progress.processed} of {progress.total} files"
    if job.result:
        words += f", {job.result.updated_files} updated, {job.result.removed_files} removed"
    return f"{words}: {clipped(job.error, 300)}" if job.error else words
