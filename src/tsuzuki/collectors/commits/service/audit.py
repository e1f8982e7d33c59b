"""The audit log of what people change about commits."""

from tsuzuki.store import audit
from tsuzuki.store.sql.database import Connection
from tsuzuki.wiring.collector import ServiceContext


def record_change(
    connection: Connection,
    context: ServiceContext,
    action: str,
    name: str,
    *,
    before: str | None = None,
    after: str | None = None,
) -> None:
    """Record that the actor did `action` to the project, target or collection `name`."""
    audit.record(
        connection,
        actor=context.actor,
        action=action,
        object_type="commits",
        object_id=name,
        before=before,
        after=after,
    )
