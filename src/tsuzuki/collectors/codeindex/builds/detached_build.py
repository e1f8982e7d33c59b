"""A build in a separate process, which continues after the process that started it ends."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

WAIT_SECONDS = 3600.0
_PROGRAM = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from tsuzuki.collectors.codeindex.builds.detached_build import main; main(*sys.argv[2:])"
)


def start_process(
    root: Path,
    job_id: str,
    environ: Mapping[str, str],
    *,
    lsp: Mapping[str, Sequence[str]],
    paths: Sequence[str] = (),
    is_forced: bool = False,
) -> "subprocess.Popen[bytes]":
    """Start it, away from our terminal and our signals."""
    options = {"lsp": lsp, "paths": paths, "is_forced": is_forced}
    process = subprocess.Popen(  # noqa: S603 -- our own program
        [
            sys.executable,
            "-c",
            _PROGRAM,
            json.dumps(sys.path),
            os.fspath(root),
            job_id,
            json.dumps(options),
        ],
        cwd="/",
        env={**os.environ, **environ},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    # It outlives us; but if we outlive it, it is reaped.
    threading.Thread(target=process.wait, name="reap", daemon=True).start()
    return process


def main(root: str, job_id: str, options: str) -> None:
    """The program of that process."""
    from tsuzuki.collectors.codeindex.service.builds import Builds  # noqa: PLC0415 -- it imports us

    builds, asked = Builds(), json.loads(options)
    started = builds.start(
        Path(root),
        job_id=job_id,
        lsp={language: tuple(words) for language, words in asked["lsp"].items()},
        paths=asked["paths"],
        is_forced=asked["is_forced"],
    )
    if started.is_new:
        builds.jobs.wait(job_id, WAIT_SECONDS)
