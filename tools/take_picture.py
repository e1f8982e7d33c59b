"""Takes the picture of the web page in the README: the overview of a new demo while a job runs.

    make picture

The demo runs in a folder of its own, outside of any repository, so that every picture shows the same data. Needs the
Chromium of the tests.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.request import urlopen

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from support.chromium import browser  # noqa: E402 -- found by the path above
from support.daemons import eventually  # noqa: E402 -- as above

PICTURE = ROOT / "docs" / "pictures" / "overview.png"
SIZE = {"width": 1280, "height": 800}
BYTES_MAX = 200_000
WAIT_SECONDS = 120.0


@contextmanager
def demo_url() -> Iterator[str]:
    """The address of a demo that runs inside the block."""
    with tempfile.TemporaryDirectory() as folder:
        process = subprocess.Popen(  # noqa: S603 -- our own program
            [
                Path(sys.executable).with_name("tsuzuki"),
                "demo",
                "--listen",
                "127.0.0.1:0",
                "--output",
                "jsonl",
            ],
            cwd=folder,
            env={**os.environ, "TSUZUKI_CODEINDEX_FOLDER": f"{folder}/index"},
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            told = process.stdout.readline() if process.stdout else b""
            yield json.loads(told)["url"]
        finally:
            os.killpg(process.pid, signal.SIGINT)
            process.wait()


def is_alive(url: str) -> bool:
    """Whether the report's retry has succeeded while a long run is in progress."""
    with urlopen(f"{url}/api/v1/runs?limit=100") as answer:  # noqa: S310 -- our own server
        runs = {(run["job_name"], run["state"]) for run in json.load(answer)["items"]}
    return runs >= {
        ("nightly-report", "SUCCEEDED"),
        ("commits", "SUCCEEDED"),
        ("make-thumbnails", "RUNNING"),
    }


def main() -> None:
    with demo_url() as url, browser() as chromium:
        eventually(lambda: is_alive(url), what="a demo with runs", seconds=WAIT_SECONDS)
        page = chromium.new_context(viewport=SIZE, color_scheme="light", locale="en").new_page()
        page.goto(url)
        page.evaluate("document.fonts.ready")
        page.screenshot(path=PICTURE)
    size = PICTURE.stat().st_size
    if size > BYTES_MAX:
        raise SystemExit(f"{PICTURE} has {size} bytes, more than {BYTES_MAX}")
    sys.stdout.write(f"{PICTURE.relative_to(ROOT)}: {size} bytes\n")


if __name__ == "__main__":
    main()
