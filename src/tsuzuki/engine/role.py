"""What a process does, and who it is while it does so."""

import os
import secrets
import socket
from dataclasses import dataclass

from tsuzuki.store import notices, workers
from tsuzuki.store.database import Connection
from tsuzuki.store.notices import Audience


@dataclass(frozen=True, kw_only=True)
class Role:
    """What a process does."""

    lead: bool = True
    work: bool = True
    capacity: int = 10
    tags: frozenset[str] = frozenset()

    @property
    def audiences(self) -> frozenset[Audience]:
        """As what it is called."""
        parts = {Audience.LEADER: self.lead, Audience.WORKERS: self.work}
        return frozenset(audience for audience, is_ours in parts.items() if is_ours)


@dataclass(frozen=True, kw_only=True)
class Identity:
    """Who a worker is. `id` is new at every start, and after having been cut off."""

    id: str
    host: str
    pid: int
    capacity: int
    tags: frozenset[str]
    software_version: str


def new_identity(role: Role, *, software_version: str) -> Identity:
    host, pid = socket.gethostname(), os.getpid()
    return Identity(
        id=f"{host}-{pid}-{secrets.token_hex(3)}",
        host=host,
        pid=pid,
        capacity=role.capacity,
        tags=role.tags,
        software_version=software_version,
    )


def register(connection: Connection, who: Identity) -> None:
    """From now on the leader may give it work."""
    workers.register(
        connection,
        worker_id=who.id,
        host=who.host,
        pid=who.pid,
        capacity=who.capacity,
        tags=who.tags,
        software_version=who.software_version,
    )
    notices.notify(connection, notices.Audience.LEADER)
