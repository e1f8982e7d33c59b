"""Read the audit log. Entries are written by the services that make the changes."""

from typing import Unpack

from tsuzuki.store import audit
from tsuzuki.store.audit import AuditEntry, AuditFilter
from tsuzuki.store.sql.database import Database

__all__ = ["Audit", "AuditEntry"]


class Audit:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def find(
        self, *, before_id: int | None = None, limit: int = 50, **wanted: Unpack[AuditFilter]
    ) -> list[AuditEntry]:
        """Changes, newest first."""
        with self._database.read() as connection:
            return audit.find(connection, before_id=before_id, limit=limit, **wanted)

    def count(self, *, at_most: int, **wanted: Unpack[AuditFilter]) -> int:
        """How many changes there are; counting ends at `at_most`."""
        with self._database.read() as connection:
            return audit.count(connection, at_most=at_most, **wanted)
