"""Looking after the database: upgrade, check, back up."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tsuzuki.model.errors import Unreachable
from tsuzuki.store import backup
from tsuzuki.store.inspection import Finding, inspect_database
from tsuzuki.store.schema import migrate
from tsuzuki.store.schema.migrate import Component, Upgrade
from tsuzuki.store.sql.database import Database

__all__ = ["Backup", "Finding", "Maintenance"]


@dataclass(frozen=True, kw_only=True)
class Backup:
    """A finished copy."""

    path: Path
    size_bytes: int


class Maintenance:
    def __init__(
        self, *, database: Database, components: Sequence[Component], folder: Path
    ) -> None:
        self._database = database
        self._components = components
        self._folder = folder

    def upgrade(self) -> list[Upgrade]:
        """Bring the tables to this version; a no-op when they are there."""
        return migrate.upgrade(self._database, self._components)

    def exists(self) -> bool:
        """Whether there is a database to look at. SQLite makes a file by looking, so ask first; a
        server tells by itself."""
        path = self._database.path
        return path is None or path.exists()

    def require_existing(self) -> None:
        if not self.exists():
            raise Unreachable(
                f"there is no database at {self._database.path}",
                hint="Make it with: tsuzuki db upgrade",
                code="database_missing",
            )

    def require_current(self) -> None:
        """Refuse tables of another version, older ones too."""
        migrate.require_current(self._database, self._components)

    def check(self) -> list[Finding]:
        """Look at everything, change nothing."""
        return inspect_database(self._database, self._components)

    def back_up(self, target: Path | None = None) -> Backup:
        """Copy the database as it is at this moment, whatever version it is of. Writers go on."""
        self.require_existing()
        with self._database.read():
            pass  # a database that does not answer is told as such, not as a failed copy
        path = target or self._default_target()
        return Backup(path=path, size_bytes=backup.back_up(self._database, path))

    def _default_target(self) -> Path:
        stamp = self._database.clock.now().strftime("%Y%m%dT%H%M%SZ")
        source = self._database.path
        if source is not None:
            return source.with_name(f"{source.stem}-{stamp}.backup.db")
        return self._folder / f"tsuzuki-{stamp}.dump"
