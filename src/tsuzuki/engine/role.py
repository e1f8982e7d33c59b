"""What a process does, and who it is while it does so."""

import os
import secrets
import socket
from dataclasses import dataclass

from tsuzuki.engine.worker import Identity


@dataclass(frozen=True, kw_only=True)
class Role:
    """What a process does."""

    lead: bool = True
    work: bool = True
    capacity: int = 10
    tags: frozenset[str] = frozenset()


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
