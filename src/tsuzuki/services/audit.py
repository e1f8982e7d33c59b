"""The audit log, for reading; the service that makes a change writes its line."""

from datetime import datetime

from tsuzuki.store import audit
from tsuzuki.store.audit import AuditEntry
from tsuzuki.store.sql.database import Database

__all__ = ["Audit", "AuditEntry"]


class Audit:
    def __init__(self, *, database: Database) -> None:
        self._database = database

    def find(
        self,
        *,
        object_type: str | None = None,
        object_id: str | None = None,
        actor: str | None = None,
        since: datetime | None = None,
        before_id: int | None = None,
        limit: int = 50,
    ) -> list[AuditEntry]:
        """Changes, newest first."""
        with self._database.read() as connection:
            return audit.find(
                connection,
                object_type=object_type,
                object_id=object_id,
                actor=actor,
                since=since,
                before_id=before_id,
                limit=limit,
            )

    def count(
        self,
        *,
        object_type: str | None = None,
        object_id: str | None = None,
        actor: str | None = None,
        since: datetime | None = None,
        at_most: int,
    ) -> int:
        """How many changes there are; counting ends at `at_most`."""
        with self._database.read() as connection:
            return audit.count(
                connection,
                object_type=object_type,
                object_id=object_id,
                actor=actor,
                since=since,
                at_most=at_most,
            )
