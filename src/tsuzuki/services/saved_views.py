"""Saved views: a list with its filters under a name, visible to all users and changed by its owner. Every change is
audited.
"""

from tsuzuki.model.errors import Conflict, NotFound, UsageError
from tsuzuki.services.acting import ActingService
from tsuzuki.store import audit, saved_views
from tsuzuki.store.saved_views import SavedView
from tsuzuki.store.sql.database import Connection, Database

__all__ = ["SavedView", "SavedViews"]

NAME_LENGTH_MAX = 100
ADDRESS_LENGTH_MAX = 2000
OWNED_MAX = 100
SHOWN_MAX = 1000


class SavedViews(ActingService):
    def __init__(self, *, database: Database, actor: str) -> None:
        self._database = database
        self._actor = actor

    def find(self) -> list[SavedView]:
        """Those of all owners, by name."""
        with self._database.read() as connection:
            return saved_views.find(connection, limit=SHOWN_MAX)

    def save(self, name: str, address: str) -> None:
        """Save an address of this server under a name of the actor; one of that name is replaced. Raises
        `UsageError` and `Conflict`."""
        name = name.strip()
        if not 1 <= len(name) <= NAME_LENGTH_MAX:
            raise UsageError(
                f"a view's name must have 1 to {NAME_LENGTH_MAX} characters", code="view_name"
            )
        if not address.startswith("/") or len(address) > ADDRESS_LENGTH_MAX:
            raise UsageError("a view must be an address on this server", code="view_address")
        with self._database.write() as connection:
            saved_views.put(connection, owner=self._actor, name=name, address=address)
            if saved_views.count_of(connection, self._actor) > OWNED_MAX:
                raise Conflict(
                    f"the maximum of {OWNED_MAX} saved views is reached",
                    hint="Delete one that you no longer need.",
                    code="views_many",
                )
            self._note(connection, "view.save", name, after={"address": address})

    def remove(self, name: str, *, owner: str | None = None) -> None:
        """Delete a view of the actor, or of another owner. Raises `NotFound`."""
        with self._database.write() as connection:
            if not saved_views.remove(connection, owner=owner or self._actor, name=name):
                raise NotFound(f"there is no saved view {name!r}", code="view_unknown")
            self._note(connection, "view.delete", name)

    def _note(self, connection: Connection, action: str, name: str, after: object = None) -> None:
        audit.record(
            connection,
            actor=self._actor,
            action=action,
            object_type="view",
            object_id=name,
            after=after,
        )
