"""Many real `tsuzuki` processes, forked from one that has imported everything, so that fifty start as fast as one.

    python -m support.forked_workers COUNT ARGUMENT...

Prints their pids and waits until it is killed.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Self


class ForkedWorkers:
    """Starts the processes when it is made; leaving it kills them."""

    def __init__(self, url: str, folder: Path, count: int, *arguments: str) -> None:
        self._group = subprocess.Popen(
            [sys.executable, "-m", "support.forked_workers", str(count), *arguments],
            cwd=folder,
            env={
                **os.environ,
                "TSUZUKI_DATABASE_URL": url,
                "PYTHONPATH": str(Path(__file__).parents[1]),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        assert self._group.stdout is not None
        self.pids: list[int] = json.loads(self._group.stdout.readline())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *problem: object) -> None:
        os.killpg(self._group.pid, signal.SIGKILL)
        self._group.communicate(timeout=120)


def main(count: int, arguments: Sequence[str]) -> None:
    import psycopg  # noqa: F401, PLC0415 -- imported once, before the forks
    from sqlalchemy.dialects.postgresql import psycopg as _dialect  # noqa: F401, PLC0415

    from tsuzuki import cli  # noqa: PLC0415
    from tsuzuki.cli.serve import up  # noqa: F401, PLC0415
    from tsuzuki.wiring import engine  # noqa: F401, PLC0415

    assert threading.active_count() == 1, "a fork copies only the thread that calls it"
    pids = []
    for _ in range(count):
        pid = os.fork()
        if pid == 0:
            sys.argv[1:] = arguments
            cli.main()
        pids.append(pid)
    print(json.dumps(pids), flush=True)  # noqa: T201
    for _ in pids:
        os.wait()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
