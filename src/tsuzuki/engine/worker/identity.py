"""A worker's identity: its id, host and process, as other processes see it."""

import os
import secrets
import socket
from dataclasses import dataclass

from tsuzuki.engine.role import ProcessRole
from tsuzuki.model.abilities import Abilities
from tsuzuki.model.settings import EngineSettings
from tsuzuki.store import workers
from tsuzuki.store.sql.database import Connection
from tsuzuki.store.wakeups import channels
from tsuzuki.store.wakeups.channels import WakeupChannel

HOST_LENGTH_MAX = 40
"""PostgreSQL cuts the name of a session after 63 bytes; the process id is to stay readable."""


@dataclass(frozen=True, kw_only=True)
class WorkerIdentity:
    """`id` is new at every start, and after having been detached."""

    id: str
    host: str
    pid: int
    capacity: int
    tags: frozenset[str]
    software_version: str
    process_name: str | None = None
    """What others on this machine know the process by, whatever ids its worker has had."""
    only_job: str | None = None
    only_run: int | None = None

    @property
    def process(self) -> str:
        """The host, cut if it is long, and the process id."""
        return f"{self.host[:HOST_LENGTH_MAX]}:{self.pid}"


def new_identity(role: ProcessRole, *, software_version: str) -> WorkerIdentity:
    host, pid = socket.gethostname(), os.getpid()
    return WorkerIdentity(
        id=f"{host}-{pid}-{secrets.token_hex(3)}",
        host=host,
        pid=pid,
        capacity=role.capacity,
        tags=role.tags,
        only_job=role.only_job,
        only_run=role.only_run,
        software_version=software_version,
    )


def register(
    connection: Connection,
    worker: WorkerIdentity,
    abilities: Abilities | None = None,
    works_by: EngineSettings | None = None,
) -> None:
    """From now on the leader may assign runs to it: those that it can execute, or any without `abilities`."""
    workers.register(
        connection,
        worker_id=worker.id,
        host=worker.host,
        pid=worker.pid,
        capacity=worker.capacity,
        tags=worker.tags,
        only_job=worker.only_job,
        only_run=worker.only_run,
        abilities=abilities,
        works_by=works_by,
        software_version=worker.software_version,
        process_name=worker.process_name,
    )
    channels.notify(connection, WakeupChannel.LEADER)
