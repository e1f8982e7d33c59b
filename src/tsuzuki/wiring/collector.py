"""The record of a collector: what it adds to each part of Tsuzuki, as import strings.

Every command loads the records, `tsuzuki --help` too, so a record imports nothing of its collector. A string
`package.module:attribute` is resolved when that part is used.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tsuzuki.model.errors import extra_missing
from tsuzuki.model.import_string import load

if TYPE_CHECKING:
    from pydantic import BaseModel

    from tsuzuki.model.job import JobSpec
    from tsuzuki.services.jobs import Jobs
    from tsuzuki.services.liveness import Liveness
    from tsuzuki.services.runs import Runs
    from tsuzuki.store.sql.database import Database

Model = TypeVar("Model", bound="BaseModel")


@dataclass(frozen=True, kw_only=True)
class CollectorContext:
    """What a handler gets beside its run. Writes go through `RunContext.transaction`; `database` is for reading what
    earlier runs stored."""

    database: "Database"
    workspace: Path
    read_section: "Callable[..., BaseModel | None]"

    def section(self, model: type[Model], *, only: Collection[str] | None = None) -> Model:
        """The collector's section of the configuration, as its `section_model`. With `only`, these keys are read and
        the others have their defaults. Raises `ConfigurationError`."""
        found = self.read_section() if only is None else self.read_section(only=only)
        if not isinstance(found, model):
            raise TypeError(f"the section is a {type(found).__name__}, not a {model.__name__}")
        return found


@dataclass(frozen=True, kw_only=True)
class ServiceContext(CollectorContext):
    """What a collector's service is built from: also the actor for the audit log, and the engine's services."""

    actor: str
    jobs: "Jobs"
    runs: "Runs"
    liveness: "Liveness"


@dataclass(frozen=True, kw_only=True)
class CheckContext(CollectorContext):
    """What a collector's doctor checks get. They must not change anything."""

    jobs: "Sequence[JobSpec]"
    """The enabled jobs of the collector's kind in the file."""
    has_tables: bool
    """Whether the database answers and has the tables of this version."""
    is_in_use: bool
    """Whether it has those of the collector, which are created when it is first used."""


@dataclass(frozen=True, kw_only=True)
class VerifyContext(CollectorContext):
    """What a collector's verification gets. It must not change anything, neither at the source nor in the database,
    but for the counts of the calls that it makes."""

    jobs: "Sequence[JobSpec]"
    """The enabled jobs of the collector's kind."""
    since: datetime
    """Things that happened before then, such as older posts, need not be compared."""
    calls_max: int
    """Upper bound of the calls to a source with a quota."""
    advance: Callable[[int], None]
    """Report that so many more things were compared. Call it after each page: it raises if the caller asked to
    stop."""


@dataclass(frozen=True, kw_only=True)
class Collector:
    """A collector, as an entry point of the group `tsuzuki.collectors` names it."""

    name: str
    """The `type:` of its jobs, the key of its section and the name of its service."""

    summary: str
    """One line for `tsuzuki --help`."""

    kind: str
    """A `JobKind`: the keys of its jobs and of its section."""

    handler: str
    """A function that executes a run: `(CollectorContext, RunContext) -> result`."""

    component: str | None = None
    """A `Component`: its tables and their migrations."""

    service: str | None = None
    """Its use cases, called with a `ServiceContext`. Commands, routes, pages and tools act through it."""

    checks: str | None = None
    """Checks for `tsuzuki doctor`: a function of a `CheckContext` that yields `Check`s."""

    verify: str | None = None
    """Proof of completeness for `tsuzuki verify`: a function of a `VerifyContext` that compares what is stored with its
    source and yields a `model.verification.Verified` for each subject. It is called by the name of its command."""

    needs: tuple[str, ...] = ()
    """Libraries that its extra installs, by the start of their import names. A missing one is reported with the extra
    to install."""

    dry_run_arguments: Mapping[str, Any] | None = None
    """Arguments with which a run does its work and sends nothing: `tsuzuki run-due --dry-run` runs due jobs with them.
    None: it only lists them."""

    own_jobs: tuple[str, ...] = ()
    """Names of jobs that it defines itself, for work that people ask for by hand; lists of jobs leave them out."""

    audited: tuple[str, ...] = ()
    """Its own types of objects in the audit log."""

    rights: str | None = None
    """A tuple of `model.access.CollectorRight`s: what its routes, pages and tools may require besides the engine's."""

    commands: Mapping[str, str] = field(default_factory=dict)
    """By name, a click command or group that `tsuzuki` gets."""

    cursors: str | None = None
    """For `tsuzuki job cursor`: a function of an `Application` that returns a `cli.job.cursor.Cursors`."""

    routes: tuple[str, ...] = ()
    """Routers of the HTTP API."""

    topics: str | None = None
    """A tuple of `web.stream.state_topic.StateTopic`: what streams of the HTTP API can be asked for."""

    pages: str | None = None
    """A `web.pages.extension.Pages`: screens, menu entries, templates, texts and styles of the web page."""

    tools: str | None = None
    """A `mcp.tool_set.ToolSet`: tools for coding agents."""

    stand_ins: str | None = None
    """A tuple of `sandbox.stand_in_kind.StandInKind`: servers that `tsuzuki sandbox` starts."""

    demo: str | None = None
    """A `cli.demo.part.DemoPart`: its section, its job and its stand-ins in `tsuzuki demo`."""

    bench: str | None = None
    """A module for `make bench` in a checkout, run as `python -m MODULE`, with `--short` for smaller numbers. It writes
    `bench/results/NAME.json` with `bench.rows.run`."""

    @property
    def verified_as(self) -> str:
        """The name of its part of `tsuzuki verify`: that of its first command, else its own."""
        return next(iter(self.commands), self.name)

    def load(self, target: str) -> Any:
        """The object that an import string of this record names. Raises `ConfigurationError` if a library of the
        collector's extra is not installed."""
        try:
            return load(target)
        except ModuleNotFoundError as missing:
            if not (missing.name or "").startswith(self.needs):
                raise
            raise extra_missing(
                f"{self.name} needs the library {missing.name}, which is not installed",
                extra=self.name,
            ) from None
