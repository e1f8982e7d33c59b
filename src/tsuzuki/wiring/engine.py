"""Joins the engine of one process: executors, metrics, clock and chance."""

from collections.abc import Callable, Collection, Mapping
from functools import partial
from importlib.metadata import version
from random import Random
from typing import Any

from tsuzuki.config import expand
from tsuzuki.engine.executors.command.executor import CommandExecutor, require_linux
from tsuzuki.engine.executors.isolated.executor import ByIsolation, IsolatedExecutor
from tsuzuki.engine.executors.isolated.transactions import ChildDatabase
from tsuzuki.engine.executors.python.executor import PythonExecutor
from tsuzuki.engine.executors.registry import ExecutorRegistry
from tsuzuki.engine.process import Engine
from tsuzuki.engine.process_files import MachineProcessFiles, folder_for
from tsuzuki.engine.role import ProcessRole
from tsuzuki.engine.run_context import RunContext
from tsuzuki.model.abilities import Abilities
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.model.secrets import SecretMask
from tsuzuki.services import bulk, verification
from tsuzuki.services.bulk_handler import bulk_handler
from tsuzuki.store import jobs
from tsuzuki.wiring.collectors import guarded
from tsuzuki.wiring.resources import Resources
from tsuzuki.wiring.verification import join_verification


def build_engine(
    resources: Resources, role: ProcessRole, functions: Mapping[str, Callable[..., Any]]
) -> Engine:
    """The engine of this process, not yet started. `functions` are handlers defined in it. Raises
    `ConfigurationError` if an enabled job is of a refused kind, or if the system is unfit: runs would fail here."""
    require_linux()
    database = resources.database
    process_files = MachineProcessFiles(folder_for(database.engine.url))
    engine: Engine

    def kill_grace_seconds() -> float:
        return engine.settings().kill_grace_seconds

    handlers = {**collector_handlers(resources), **_own_handlers(resources)}
    _require_handlers_of_enabled_jobs(resources)
    python = PythonExecutor(
        functions={**handlers, **functions},
        base_folder=resources.workspace,
        max_threads=role.capacity,
        kill_grace_seconds=kill_grace_seconds,
        clock=database.clock,
        program=role.program,
    )
    command = CommandExecutor(
        expand=partial(expand, cwd=resources.configuration.cwd),
        base_folder=resources.workspace,
        kill_grace_seconds=kill_grace_seconds,
        environ=dict(resources.environ),  # a copy is compared faster with each command
        secret_names=resources.configuration.withheld_variables,
        more_secrets=partial(resources.configuration.secrets, resources.environ),
        process_lock=lambda: process_files.descriptor,
    )
    isolated = IsolatedExecutor(
        base_folder=resources.workspace,
        kill_grace_seconds=kill_grace_seconds,
        database=_child_database(resources, lambda: engine),
        note_missing=python.note_missing,
        secret_names=resources.configuration.withheld_variables,
        more_secrets=partial(resources.configuration.secrets, resources.environ),
        process_lock=lambda: process_files.descriptor,
    )
    executors = ExecutorRegistry(
        {
            **dict.fromkeys(handlers, python),
            "command": command,
            "python": ByIsolation(threads=python, processes=isolated),
        }
    )

    def renew_deadline(at: float) -> None:
        command.renew_deadline(at)
        isolated.renew_deadline(at)

    def find_abilities(packages: Collection[str]) -> Abilities:
        return Abilities(
            kinds=executors.names,
            packages=python.importable(packages),
            program=role.program,
            missing=python.missing(),
        )

    engine = Engine(
        database=database,
        executor=executors,
        clock=database.clock,
        random=Random(),  # noqa: S311 -- jitter, not secrets
        role=role,
        software_version=version("tsuzuki"),
        components=lambda: resources.tables.current,
        archive=resources.log_archive(),
        coordination=resources.coordination(),
        renew_deadline=renew_deadline,
        hide_secrets=SecretMask(partial(resources.configuration.secrets, resources.environ)).text,
        find_abilities=find_abilities,
        process_files=process_files,
    )
    return engine


def _child_database(resources: Resources, engine: Callable[[], Engine]) -> ChildDatabase:
    """What isolated functions need to write; `engine` is not there yet."""
    database = resources.database
    return ChildDatabase(
        url=resources.configuration.database_url,
        worker_id=lambda: engine().worker.worker_id,
        seconds_max=lambda: engine().settings().transaction_seconds_max,
        reserve_connection=database.reserve_connection,
        release_connection=database.release_connection,
        end_sessions=database.end_sessions,
        reports=lambda: engine().worker.output,
    )


def _own_handlers(resources: Resources) -> dict[str, Callable[[RunContext], Any]]:
    """The handlers of the engine's own kinds of job."""
    return {
        bulk.HANDLER: bulk_handler(resources.database),
        verification.HANDLER: verification.verification_handler(join_verification(resources)),
    }


def collector_handlers(resources: Resources) -> dict[str, Callable[[RunContext], Any]]:
    """The handler of every collector, by the kind of job it is for. A collector whose handler cannot be imported is
    refused."""
    handlers: dict[str, Callable[[RunContext], Any]] = {}
    for name, collector in resources.usable_collectors().items():
        distribution = resources.collectors.distributions.get(name)
        try:
            if distribution is not None:  # ours are imported by the first run
                guarded(name, distribution, partial(collector.load, collector.handler))
        except ConfigurationError as problem:
            resources.refused[name] = problem
        else:
            handlers[name] = partial(_handle, resources, name)
    return handlers


def _handle(resources: Resources, name: str, run: RunContext) -> Any:
    resources.tables.use(name)
    collector = resources.collectors.usable[name]
    return collector.load(collector.handler)(resources.collector_context(name), run)


def _require_handlers_of_enabled_jobs(resources: Resources) -> None:
    """Refuse to start where runs would fail: for a refused collector, or for one whose tables cannot be created."""
    with resources.database.read() as connection:
        kinds = jobs.enabled_kinds(connection)
    for kind in kinds:
        if kind in resources.refused:
            raise resources.refused[kind]
        resources.tables.use(kind)
