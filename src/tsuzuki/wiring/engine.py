"""Joins the engine of one process to an application: executors, metrics, clock and chance."""

import os
from collections.abc import Callable, Mapping
from functools import partial
from importlib.metadata import version
from random import Random
from typing import Any

from tsuzuki.collectors.collector import CollectorContext, Handler
from tsuzuki.config import expand
from tsuzuki.engine.executors.command.executor import CommandExecutor
from tsuzuki.engine.executors.python.executor import PythonExecutor
from tsuzuki.engine.executors.registry import ExecutorRegistry
from tsuzuki.engine.process import Engine
from tsuzuki.engine.role import Role
from tsuzuki.wiring import COLLECTORS, JOB_KINDS, Application, log_archive_of


def build_engine(
    application: Application,
    role: Role,
    *,
    functions: Mapping[str, Callable[..., Any]] | None = None,
    environ: Mapping[str, str] = os.environ,
) -> Engine:
    """The engine of this process, not yet started. `functions` are handlers defined in it."""
    database = application.database
    workspace = application.configuration.workspace
    engine: Engine

    def kill_grace_seconds() -> float:
        return engine.settings().kill_grace_seconds

    python = PythonExecutor(
        functions={**collecting_functions(application), **(functions or {})},
        base_folder=workspace,
        max_threads=role.capacity,
        kill_grace_seconds=kill_grace_seconds,
        clock=database.clock,
    )
    executors = ExecutorRegistry(
        {
            **dict.fromkeys(JOB_KINDS, python),
            "command": CommandExecutor(
                expand=expand,
                base_folder=workspace,
                kill_grace_seconds=kill_grace_seconds,
                output_bytes_max=lambda: engine.settings().log_bytes_max_per_run,
                environ=environ,
            ),
            "python": python,
        }
    )
    engine = Engine(
        database=database,
        executor=executors,
        clock=database.clock,
        random=Random(),  # noqa: S311 -- jitter, not secrets
        role=role,
        software_version=version("tsuzuki"),
        archive=log_archive_of(application.configuration, database),
        coordination=application.coordination(),
    )
    return engine


def collecting_functions(application: Application) -> dict[str, Handler]:
    """The handler of every collector, by the kind of job it is for."""
    return {
        collector.kind.name: collector.handler(
            CollectorContext(
                database=application.database,
                workspace=application.configuration.workspace,
                section=partial(application.configuration.section, collector.kind.name),
            )
        )
        for collector in COLLECTORS
    }
