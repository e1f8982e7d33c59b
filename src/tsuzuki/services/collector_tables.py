"""The tables of collectors: created, or taken over if a database already has them, when a collector is first used.

A database shared by several applications contains only the tables of the collectors used on it. Reading counts as
use too, so a collector's service and its handler ask here first.
"""

import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial

from tsuzuki.model.errors import SchemaMismatch, TsuzukiError, Unreachable
from tsuzuki.store.schema import migrate
from tsuzuki.store.schema.migrate import ENGINE, Component, Upgrade
from tsuzuki.store.sql.database import Database


class CollectorTables:
    """The components by collector. `plug_ins` are the collectors of other distributions: `refuse` turns a problem with
    the tables of one into the error that its users get from then on. A problem with ours is raised as it is."""

    def __init__(
        self,
        *,
        database: Database,
        components: Mapping[str, Component],
        plug_ins: Collection[str],
        refuse: Callable[[str, BaseException], TsuzukiError],
    ) -> None:
        self._database = database
        self._components = components
        self._plug_ins = plug_ins
        self._refuse = refuse
        self._lock = threading.Lock()
        self._current: dict[str, Component] = {}
        self._may_create = False

    @property
    def current(self) -> tuple[Component, ...]:
        """The engine and the collectors whose tables this process has found, or brought, to this version."""
        return (ENGINE, *self._current.copy().values())

    def in_use(self) -> list[Component]:
        """The engine and the collectors that have tables in the database, of whatever version."""
        return [ENGINE, *self._in_use().values()]

    def is_in_use(self, name: str) -> bool:
        """Whether a collector keeps no tables, or has them in the database."""
        return name not in self._components or name in self._in_use()

    def upgrade(self) -> list[Upgrade]:
        """Bring the tables of the engine and of the collectors in use to this version; a no-op when they are. From now
        on the tables of another collector are created when it is first used."""
        self._may_create = True
        upgrades = migrate.upgrade(self._database, [ENGINE])
        for name, component in self._in_use().items():
            upgrades += self._brought(name, partial(migrate.upgrade, self._database, [component]))
        return upgrades

    def require_current(self) -> None:
        """Raise `SchemaMismatch` for tables of another version, older ones too."""
        migrate.require_current(self._database, [ENGINE])
        for name, component in self._in_use().items():
            self._brought(name, partial(self._required, component))

    def use(self, name: str) -> None:
        """Make sure of the tables of a collector. Raises `SchemaMismatch` if they cannot be created or adopted, or if
        this process only looks, as a dry run does, and they are not there."""
        component = self._components.get(name)
        if component is None or name in self._current:
            return
        with self._lock:
            if name not in self._current:
                self._brought(name, partial(self._created, component), raises=True)

    def _brought(
        self, name: str, bring: Callable[[], Sequence[Upgrade]], *, raises: bool = False
    ) -> Sequence[Upgrade]:
        try:
            upgrades = bring()
        except (Exception, SystemExit) as problem:
            is_database = isinstance(problem, Unreachable) and not isinstance(
                problem, SchemaMismatch
            )
            if name not in self._plug_ins or is_database:
                raise
            refusal = self._refuse(name, problem)
            if raises:
                raise refusal from problem
            return []
        self._current[name] = self._components[name]
        return upgrades

    def _created(self, component: Component) -> Sequence[Upgrade]:
        if self._may_create:
            return migrate.upgrade(self._database, [component])
        if component not in migrate.in_use(self._database, [component]):
            raise SchemaMismatch(
                f"the database does not have the tables of {component.name} yet",
                hint="They are created on first use, but not by a dry run.",
            )
        return self._required(component)

    def _required(self, component: Component) -> Sequence[Upgrade]:
        migrate.require_current(self._database, [component])
        return []

    def _in_use(self) -> dict[str, Component]:
        used = migrate.in_use(self._database, self._components.values())
        return {name: one for name, one in self._components.items() if one in used}
