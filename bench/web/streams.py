"""Processor time of a server with 200 open streams, as a share of one core.

    python -m bench.web.streams [--streams 200] [--seconds 15] [--database-url URL]

The server is `tsuzuki web`, a process of its own; this process has the readers and makes the moves. Each reader follows
all runs and the workers. Every move reaches every reader, which is checked.
"""

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import Any
from urllib.parse import urlsplit

from tsuzuki.services.runs import Request
from tsuzuki.wiring.application import Application, opened

STREAMS = 200
SECONDS = 15.0
RATES = (0, 15, 150)
"""Moves of runs in a second: none; of five short runs; of fifty."""

GRACE_SECONDS = 3.0
TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(pid: int) -> float:
    """Processor time a process has used so far (Linux)."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


@contextmanager
def server(folder: Path, database_url: str) -> Iterator[tuple[int, str]]:
    """The pid and the address of a server of its own."""
    words = [sys.executable, "-m", "tsuzuki", "web", "--listen", "127.0.0.1:0"]
    environ = {
        **os.environ,
        "TSUZUKI_DATABASE_URL": database_url,
        "TSUZUKI_WEB_OWNER_MODE": "open",
    }
    with subprocess.Popen(
        words, cwd=folder, env=environ, stderr=subprocess.PIPE, text=True
    ) as process:
        if process.stderr is None:
            raise RuntimeError("no stderr")
        try:
            addresses = (re.search(r"http://127\.0\.0\.1:\d+", line) for line in process.stderr)
            yield process.pid, next(found[0] for found in addresses if found)
        finally:
            process.terminate()


class Reader:
    """Reader of one stream that counts the state changes it received."""

    def __init__(self) -> None:
        self.moves = 0
        self.is_ready = asyncio.Event()

    async def follow(self, url: str) -> None:
        place = urlsplit(url)
        reader, writer = await asyncio.open_connection(place.hostname, place.port, limit=2**22)
        request = "GET /api/v1/stream?topics=runs,workers HTTP/1.1\r\nHost: localhost\r\n\r\n"
        writer.write(request.encode())
        try:
            while line := await reader.readline():
                if line.startswith(b"event: ready"):
                    self.is_ready.set()
                self.moves += line.count(b'"to_state":"CANCELED"')
        finally:
            writer.close()


async def move(application: Application, rate: int, seconds: float) -> int:
    """Cancel runs at a fixed rate; return the total number."""
    moved = 0
    for second in range(int(seconds)):
        end = monotonic() + 1
        if rate:
            wanted = [Request(job="moved", delay_seconds=3600.0)] * rate
            for submission in await asyncio.to_thread(application.runs.submit_many, wanted):
                await asyncio.to_thread(application.runs.cancel, submission.run_id)
                moved += 1
        await asyncio.sleep(max(end - monotonic(), 0) if second < seconds else 0)
    return moved


async def examine(
    application: Application, pid: int, url: str, *, streams: int, seconds: float
) -> dict[str, Any]:
    """The share of a core at each rate."""
    readers = [Reader() for _ in range(streams)]
    tasks = [asyncio.create_task(reader.follow(url)) for reader in readers]
    async with asyncio.timeout(60):
        await asyncio.gather(*(reader.is_ready.wait() for reader in readers))
    figures: dict[str, Any] = {"streams": streams}
    told = 0
    for rate in RATES:
        await asyncio.sleep(GRACE_SECONDS)
        used, started = processor_seconds(pid), monotonic()
        told += await move(application, rate, seconds)
        share = (processor_seconds(pid) - used) / (monotonic() - started)
        figures[f"seconds_at_{rate}_moves_per_second"] = round(monotonic() - started, 1)
        figures[f"core_percent_at_{rate}_moves_per_second"] = round(100 * share, 1)
    await asyncio.sleep(GRACE_SECONDS)
    figures["moves"] = told
    figures["readers_told_all"] = sum(reader.moves == told for reader in readers)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return figures


def measure(
    *, streams: int = STREAMS, seconds: float = SECONDS, database_url: str | None = None
) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="tsuzuki-streams-") as name:
        folder = Path(name)
        url = database_url or f"sqlite:///{folder / 'db.sqlite'}"
        with opened(database_url=url, environ=os.environ, cwd=folder) as application:
            application.jobs.define("moved", {"command": ["true"]})
            with server(folder, url) as (pid, address):
                return asyncio.run(
                    examine(application, pid, address, streams=streams, seconds=seconds)
                )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--streams", type=int, default=STREAMS)
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--database-url")
    given = parser.parse_args()
    figures = measure(streams=given.streams, seconds=given.seconds, database_url=given.database_url)
    print(json.dumps(figures, indent=1))


if __name__ == "__main__":
    main()
