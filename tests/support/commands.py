"""A command executor in its own workspace, shared by the tests of a module, because starting its supervisor
takes longer than most of them."""

import os
import shutil
from pathlib import Path
from typing import Any

from support.executions import Executions, RecordingRunIO, a_task
from tsuzuki.config import expand
from tsuzuki.engine.executors.command.executor import CommandExecutor
from tsuzuki.engine.outcome import Outcome
from tsuzuki.engine.task import Task


class Commands:
    """Runs commands one at a time. `environ` is the worker's environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.environ: dict[str, str] = {}
        self.executor = CommandExecutor(
            expand=expand,
            base_folder=folder,
            kill_grace_seconds=lambda: 60.0,
            environ=self.environ,
        )

    def start(self, *argv: str, task: Task | None = None, **options: Any) -> Executions:
        executions = Executions(self.executor)
        executions.start(task or a_task("command", {"argv": list(argv), **options}))
        return executions

    def run(
        self, *argv: str, task: Task | None = None, **options: Any
    ) -> tuple[Outcome, RecordingRunIO]:
        executions = self.start(*argv, task=task, **options)
        return executions.outcome(), executions.run_io

    def fresh(self) -> "Commands":
        """Itself, with an empty workspace and a fresh environment."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir()
        self.environ.clear()
        self.environ.update(PATH=os.environ["PATH"], HOME="/nowhere")
        return self
