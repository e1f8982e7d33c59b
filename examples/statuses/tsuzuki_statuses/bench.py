"""Benchmark: statuses collected per second from the stand-in, compared with a loop that only requests the pages.

    python -m tsuzuki_statuses.bench [--short] [--result statuses.json]

`make bench` runs it too, if the distribution is installed in the checkout's environment.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from bench.rows import run
from tsuzuki.sandbox.server import StandIn
from tsuzuki_statuses.options import Section
from tsuzuki_statuses.sandbox import ACCOUNT, Account
from tsuzuki_statuses.source import Mastodon

FILE = """\
statuses: {{base_url: "{url}"}}
jobs:
  news: {{type: statuses, account: "{account}"}}
"""


def measures(options):
    with StandIn(Account(options.statuses)) as server:
        bare = _seconds(lambda: _asked(Section(base_url=server.url)))
        ours = _seconds(lambda: _collected(server.url))
    of = f"{options.statuses} statuses in pages"
    yield {"measure": of, "program": "bare", "seconds": bare}
    yield {"measure": of, "program": "ours", "seconds": ours, "seconds_to_bare": ours / bare}


def _seconds(work):
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _asked(section):
    newest_id = None
    with Mastodon(section) as mastodon:
        while page := mastodon.page_after(ACCOUNT, newest_id):
            newest_id = page[-1].id


def _collected(url):
    """Collect with commands in two processes, as a user would."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "tsuzuki.yaml").write_text(FILE.format(url=url, account=ACCOUNT), "utf-8")
        for words in (("job", "run", "news"), ("run-due",)):
            command = [sys.executable, "-m", "tsuzuki", *words]
            subprocess.run(command, cwd=folder, check=True, capture_output=True)  # noqa: S603 -- our own program


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--statuses", type=int, default=10_000)
    run(parser, measures, name="statuses", short={"statuses": 400})
