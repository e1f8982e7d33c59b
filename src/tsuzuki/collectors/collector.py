"""What a collector brings with it, and what it is given."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from tsuzuki.config import JobKind
from tsuzuki.engine.run_context import RunContext
from tsuzuki.store.schema.migrate import Component
from tsuzuki.store.sql.database import Database

Handler = Callable[[RunContext], Any]


@dataclass(frozen=True, kw_only=True)
class CollectorContext:
    """What a handler works with beside its run. Its writes go through `RunContext.transaction`;
    `database` is for reading what earlier runs left."""

    database: Database
    workspace: Path
    section: Callable[[], BaseModel | None]
    """What the installation says for the collector's kind of job; raises `ConfigurationError`."""


@dataclass(frozen=True, kw_only=True)
class Collector:
    """A collector, as `wiring` names it. `handler` is called when an engine is built and should
    leave its imports to the first run: most processes never collect."""

    kind: JobKind
    component: Component
    handler: Callable[[CollectorContext], Handler]
