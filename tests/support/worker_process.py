"""A worker process for a test to kill: runs one command, prints its output, and waits for its end."""

import json
import sys
import threading
from pathlib import Path
from typing import Any

from support.executions import a_task
from tsuzuki.engine.executors.command.executor import CommandExecutor


class PrintingRunIO:
    def log(self, task: Any, stream: str, content: bytes) -> None:
        print(content.decode(), flush=True)  # noqa: T201

    def has_space(self) -> bool:
        return True


def main() -> None:
    executor = CommandExecutor(
        expand=lambda text, _: text, base_folder=Path("/"), kill_grace_seconds=lambda: 60.0
    )
    task = a_task("command", json.loads(sys.argv[1]))
    ended = threading.Event()
    executor.start(task, PrintingRunIO(), lambda *_: ended.set())  # type: ignore[arg-type]
    ended.wait()


if __name__ == "__main__":
    main()
