"""Which collectors there are: ours, and those of other distributions.

A distribution adds one through the entry-point group `tsuzuki.collectors`: the entry's name is the collector's,
its value a `Collector`. One that cannot be used is refused with an error that names it. The commands go on
without it; an engine does not start, because it would fail the runs of that kind.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING

from tsuzuki.collectors.books import BOOKS
from tsuzuki.collectors.collector import Collector
from tsuzuki.collectors.commits import COMMITS
from tsuzuki.model.errors import ConfigurationError

if TYPE_CHECKING:
    from tsuzuki.config import JobKind
    from tsuzuki.store.schema.migrate import Component

OURS: tuple[Collector, ...] = (COMMITS, BOOKS)
"""Every collector of this distribution, named here and nowhere else."""

ENTRY_POINT_GROUP = "tsuzuki.collectors"
BUILT_IN_KINDS = ("command", "python")


@dataclass(frozen=True, kw_only=True)
class CollectorRecords:
    """The records by name, and why those of other distributions that are missing were refused."""

    usable: Mapping[str, Collector]
    refused: Mapping[str, ConfigurationError]


@dataclass(frozen=True, kw_only=True)
class InstalledCollectors(CollectorRecords):
    """The same with their parts loaded: kinds of job, and everything that keeps tables."""

    kinds: "Mapping[str, JobKind]"
    components: "tuple[Component, ...]"


@cache
def collector_records() -> CollectorRecords:
    """The records only; none of their parts is loaded."""
    usable = {collector.name: collector for collector in OURS}
    refused: dict[str, ConfigurationError] = {}
    for entry in entry_points(group=ENTRY_POINT_GROUP):
        try:
            usable[entry.name] = _record(entry, usable)
        except ConfigurationError as problem:
            refused[entry.name] = problem
    return CollectorRecords(usable=usable, refused=refused)


@cache
def installed_collectors() -> InstalledCollectors:
    """Every collector with its kind of job and its tables."""
    from tsuzuki.store.schema.migrate import ENGINE  # noqa: PLC0415 -- loads the database's library

    records = collector_records()
    usable: dict[str, Collector] = {}
    refused = dict(records.refused)
    kinds: dict[str, JobKind] = {}
    components = [ENGINE]
    for name, collector in records.usable.items():
        try:
            kind, component = _parts(collector, components)
        except ConfigurationError as problem:
            refused[name] = problem
            continue
        usable[name], kinds[name] = collector, kind
        components += [component] if component else []
    return InstalledCollectors(
        usable=usable, refused=refused, kinds=kinds, components=tuple(components)
    )


def _record(entry: EntryPoint, taken: Mapping[str, Collector]) -> Collector:
    owner = entry.dist.name if entry.dist else "an unknown distribution"
    if entry.name in taken or entry.name in BUILT_IN_KINDS:
        raise _refusal(entry.name, f"{owner} adds it, but the name is taken")
    try:
        record = entry.load()
    except Exception as problem:
        raise _refusal(entry.name, f"{owner}: {_brief(problem)}") from problem
    if not isinstance(record, Collector):
        raise _refusal(entry.name, f"{owner}: {entry.value} is not a Collector")
    if record.name != entry.name:
        raise _refusal(entry.name, f"{owner}: {entry.value} calls itself {record.name!r}")
    return record


def _parts(collector: Collector, others: "list[Component]") -> "tuple[JobKind, Component | None]":
    try:
        kind = collector.kind()
        component = collector.component() if collector.component else None
    except Exception as problem:
        if collector in OURS:
            raise
        raise _refusal(collector.name, _brief(problem)) from problem
    if kind.name != collector.name:
        raise _refusal(collector.name, f"its kind of job is {kind.name!r}")
    if component is not None:
        _refuse_clash(collector.name, component, others)
    return kind, component


def _refuse_clash(name: str, component: "Component", others: "list[Component]") -> None:
    """Two components with one table, or one version table, would migrate each other's."""
    for other in others:
        shared = sorted({*component.metadata.tables} & {*other.metadata.tables})
        if shared or component.name == other.name:
            what = f"its tables ({', '.join(shared) or component.name})"
            raise _refusal(name, f"{what} are those of {other.name}")


def _refusal(name: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"the collector {name!r} cannot be used: {why}",
        hint=f"Repair or uninstall the distribution that adds {name!r} to {ENTRY_POINT_GROUP}.",
        code="collector_refused",
    )


def _brief(problem: Exception) -> str:
    return f"{type(problem).__name__}: {problem}"
