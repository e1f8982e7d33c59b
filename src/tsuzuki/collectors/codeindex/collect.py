"""The handler of a codeindex job: build the index of each root. A failing root does not stop the others; the run
fails at the end.
"""

from typing import Any

from tsuzuki.collectors.codeindex.builds.job import BuildStatus
from tsuzuki.collectors.codeindex.lsp.settings import LspCommands, as_command
from tsuzuki.collectors.codeindex.options import CodeIndexOptions
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.errors import IncompleteRun, TsuzukiError
from tsuzuki.wiring.collector import CollectorContext

LOOK_SECONDS = 0.25
CANCEL_SECONDS = 10.0


def collect(collector_context: CollectorContext, run: RunContext) -> dict[str, Any]:
    """The result has the BuildJob of each root, or the error."""
    options = CodeIndexOptions.model_validate(run.options)
    builds = Builds(clock=collector_context.database.clock)
    lsp = {language: as_command(words) for language, words in options.lsp.items()}
    results: list[dict[str, Any]] = []
    for root in options.roots:
        run.raise_if_cancelled()
        results.append({"root": root, **_build(builds, collector_context, run, root, lsp)})
    failed = [one["root"] for one in results if one["error"] is not None]
    if failed:
        raise IncompleteRun(
            f"{len(failed)} of {len(results)} trees could not be indexed: {', '.join(failed)}",
            result={"roots": results},
            hint=next(one["error"] for one in results if one["error"] is not None),
        )
    return {"roots": results}


def _build(
    builds: Builds,
    collector_context: CollectorContext,
    run: RunContext,
    named: str,
    lsp: LspCommands,
) -> dict[str, Any]:
    """Build one tree, or follow the build of it that another process runs."""
    try:
        root = builds.root(named, cwd=collector_context.workspace)
        started = builds.start(root, lsp=lsp)
    except TsuzukiError as problem:
        return {"job": None, "error": problem.message}
    for note in started.notes:
        run.log(note)
    run.log(f"{root}: {started.id}" + ("" if started.is_new else ", which was already running"))
    try:
        while (job := builds.job(root, started.id)) and job.status is BuildStatus.RUNNING:
            run.progress(job.progress.processed, job.progress.total or None)
            run.wait(LOOK_SECONDS)
            run.raise_if_cancelled()
    except BaseException:
        builds.jobs.cancel(started.id)
        builds.jobs.wait(started.id, CANCEL_SECONDS)
        raise
    if job is None:
        return {"job": None, "error": f"{started.id} was taken over by another build"}
    run.progress(job.progress.processed, job.progress.total or None)
    return {"job": job.as_json(), "error": job.error}
