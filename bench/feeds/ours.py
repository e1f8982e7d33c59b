"""Feed processing as runs of a feeds job, including engine, fence, budgets, outbox, log and progress.

python -m bench.feeds.ours items <site> <gemini> <mastodon> <count> <folder>
python -m bench.feeds.ours unchanged <site> <count> <threads> <folder>
python -m bench.feeds.ours large <site> <folder>

Prints seconds and peak memory.
"""

import json
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import tsuzuki.collectors.feeds.channels.mastodon
import tsuzuki.collectors.feeds.collect  # noqa: F401 -- both imported early, as in a serving process
from bench.feeds.figures import processor_seconds, say
from bench.feeds.server import FEED_PATH
from tsuzuki.collectors.feeds.sandbox.gemini import KEY
from tsuzuki.collectors.feeds.sandbox.mastodon import TOKEN
from tsuzuki.services.garbage_collection import freeze_loaded_objects
from tsuzuki.services.runs import Request
from tsuzuki.wiring.application import Application, opened

JOB = "bot"
POLL_SECONDS = 0.1
"""Seldom: to look takes processor time from the run. When it ended is read from the database."""

NO_CAPS = {"per_run": None, "per_hour": None, "per_day": None}


@contextmanager
def working(folder: str, *, section: dict[str, Any], job: dict[str, Any]) -> Iterator[Application]:
    """A running engine in a new workspace with one feeds job."""
    document = {
        "feeds": {"private_hosts": ["127.0.0.1"], **section},
        "jobs": {JOB: {"type": "feeds", **job}},
    }
    place = Path(folder)
    (place / "tsuzuki.yaml").write_text(json.dumps(document), encoding="utf-8")  # YAML, too
    with opened(environ={}, cwd=place) as application:
        application.jobs.apply()
        freeze_loaded_objects()  # as `tsuzuki up` does before it starts
        application.local_engine.start()
        try:
            yield application
        finally:
            application.local_engine.stop()


def run(application: Application, **arguments: Any) -> tuple[dict[str, float], dict[str, Any]]:
    """Duration and result of a run."""
    started, used = datetime.now(UTC), processor_seconds()
    run_id = application.runs.submit(Request(job=JOB, arguments=arguments)).run_id
    while not (ended := application.runs.get(run_id).run).state.is_final:
        time.sleep(POLL_SECONDS)
    assert ended.result is not None, ended
    assert ended.finished_at is not None, ended
    seconds = (ended.finished_at - started).total_seconds()
    return {"seconds": seconds, "cpu_seconds": processor_seconds() - used}, ended.result


def variable(text: str) -> str:
    """Reference to an environment variable, as secrets are written in the file."""
    return f"${{NOT_SET:-{text}}}"


def items(site: str, gemini: str, mastodon: str, count: str, folder: str) -> None:
    section = {
        "models": {"default": {"provider": "gemini", "base_url": gemini, "api_key": variable(KEY)}},
        "accounts": {
            "default": {"type": "mastodon", "base_url": mastodon, "access_token": variable(TOKEN)}
        },
    }
    feed = {"url": site + FEED_PATH, "backfill": "all", "caps": NO_CAPS}
    job = {"feeds": {"news": feed}, "items_per_run": int(count)}
    with working(folder, section=section, job=job) as application:
        took, result = run(application)
    say(count=result["process"]["posted"], **took)


def unchanged(site: str, count: str, threads: str, folder: str) -> None:
    """The second fetch of the feeds: nothing has changed since the first."""
    feeds = {f"feed{number}": {"url": f"{site}/feed{number}.xml"} for number in range(int(count))}
    with working(
        folder, section={"concurrency": int(threads)}, job={"feeds": feeds}
    ) as application:
        run(application, process=False)
        took, result = run(application, process=False)
    say(count=result["fetch"]["unchanged"], **took)


def large(site: str, folder: str) -> None:
    """The first fetch of one large feed, all of whose items are to be worked on."""
    feed = {"url": site + FEED_PATH, "backfill": "all"}
    with working(folder, section={}, job={"feeds": {"news": feed}}) as application:
        took, result = run(application, process=False)
    say(count=result["fetch"]["new_items"], **took)


def main() -> None:
    match sys.argv[1:]:
        case ["items", *arguments]:
            items(*arguments)
        case ["unchanged", *arguments]:
            unchanged(*arguments)
        case ["large", *arguments]:
            large(*arguments)
        case other:
            raise SystemExit(f"no such part: {other}")


if __name__ == "__main__":
    main()
