"""Looking after the database: upgrade, check, back up."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tsuzuki.store import backup, migrate
from tsuzuki.store.database import Database
from tsuzuki.store.inspection import Finding, inspect_database
from tsuzuki.store.migrate import Component, Upgrade


@dataclass(frozen=True, kw_only=True)
class Backup:
    """A finished copy."""

    path: Path
    size_bytes: int


class Maintenance:
    def __init__(self, *, database: Database, components: Sequence[Component]) -> None:
        self._database = database
        self._components = components

    def upgrade(self) -> list[Upgrade]:
        """Bring the tables to this version; a no-op when they are there."""
        return migrate.upgrade(self._database, self._components)

    def check(self) -> list[Finding]:
        """Look at everything, change nothing."""
        return inspect_database(self._database, self._components)

    def back_up(self, target: Path | None = None) -> Backup:
        """Copy the database as it is at this moment. Writers go on."""
        migrate.require_current(self._database, self._components)
        path = target or self._default_target()
        return Backup(path=path, size_bytes=backup.back_up(self._database, path))

    def _default_target(self) -> Path:
        stamp = self._database.clock.now().strftime("%Y%m%dT%H%M%SZ")
        source = self._database.path
        if source is not None:
            return source.with_name(f"{source.stem}-{stamp}.backup.db")
        return Path.cwd() / f"tsuzuki-{stamp}.dump"
