"""The record of a collector: what it brings, and what its handler and its service are built from.

Every command loads the records, `tsuzuki --help` too. So the parts of a record are functions that import what
they need when they are called, and its faces are import strings.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

if TYPE_CHECKING:
    from pydantic import BaseModel

    from tsuzuki.config import JobKind
    from tsuzuki.engine.run_context import RunContext
    from tsuzuki.model.check import Check
    from tsuzuki.model.job import JobSpec
    from tsuzuki.services.jobs import Jobs
    from tsuzuki.services.liveness import Liveness
    from tsuzuki.services.runs import Runs
    from tsuzuki.store.schema.migrate import Component
    from tsuzuki.store.sql.database import Database

Model = TypeVar("Model", bound="BaseModel")
Handler: TypeAlias = "Callable[[RunContext], Any]"


@dataclass(frozen=True, kw_only=True)
class CollectorContext:
    """What a handler is built from. Its writes go through `RunContext.transaction`; `database` is for
    reading what earlier runs stored."""

    database: "Database"
    workspace: Path
    read_section: "Callable[..., BaseModel | None]"

    def section(self, model: type[Model], *, only: Collection[str] | None = None) -> Model:
        """What the installation says for the collector's kind of job, as its `section_model`. With `only` these
        keys are read, and the rest have their defaults. Raises `ConfigurationError`."""
        found = self.read_section() if only is None else self.read_section(only=only)
        if not isinstance(found, model):
            raise TypeError(f"the section is a {type(found).__name__}, not a {model.__name__}")
        return found


@dataclass(frozen=True, kw_only=True)
class ServiceContext(CollectorContext):
    """What a service is built from: beside the above, the actor for the audit log and the services of
    the engine that it may call."""

    actor: str
    jobs: "Jobs"
    runs: "Runs"
    liveness: "Liveness"


@dataclass(frozen=True, kw_only=True)
class CheckContext(CollectorContext):
    """What the checks of a collector are made from. They must not change anything."""

    jobs: "Sequence[JobSpec]"
    """The enabled jobs of its kind in the file."""
    has_tables: bool
    """Whether the database answers and has the tables of this version."""


@dataclass(frozen=True, kw_only=True)
class Collector:
    """A collector, as `wiring` and the entry-point group `tsuzuki.collectors` name it."""

    name: str
    """Of its kind of job, of its service and of its commands."""

    summary: str
    """One line for `tsuzuki --help`."""

    kind: "Callable[[], JobKind]"
    handler: Callable[[CollectorContext], Handler]
    """Called when an engine is built; it should leave its imports to the first run."""

    component: "Callable[[], Component] | None" = None
    """Its tables and their migrations; None if it keeps none."""

    service: Callable[[ServiceContext], Any] | None = None
    """Its use-cases for the faces; None if it has none."""

    checks: "Callable[[CheckContext], Iterable[Check]] | None" = None
    """For `tsuzuki doctor`: whether it could work, and whether the services it calls let it in. None if there is
    nothing to look at."""

    dry_run_arguments: Mapping[str, Any] | None = None
    """Arguments with which a run does its work and sends nothing: `tsuzuki run-due --dry-run` runs its due jobs with
    them. None: it only lists them."""

    faces: Mapping[str, str] = field(default_factory=dict)
    """What it adds to each face, as `package.module:attribute`. `cli`: a click command or group."""
