"""Finds the installed collectors through the entry-point group `tsuzuki.collectors`, our own among them.

An entry's name is the collector's, its value a `Collector`. A collector of another distribution that cannot be used is
refused with an error that names both. Commands continue without it; an engine does not start if it would fail the runs
of an enabled job.
"""

import logging
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from functools import cache, partial
from importlib.metadata import EntryPoint, entry_points
from typing import TYPE_CHECKING, TypeVar

from tsuzuki.model.access import AnyRight, CollectorRight, Right
from tsuzuki.model.audited_objects import OBJECT_TYPES
from tsuzuki.model.errors import ConfigurationError, TsuzukiError
from tsuzuki.wiring.collector import Collector

if TYPE_CHECKING:
    from tsuzuki.config import JobKind
    from tsuzuki.store.schema.migrate import Component

ENTRY_POINT_GROUP = "tsuzuki.collectors"
OUR_DISTRIBUTION = "tsuzuki"
BUILT_IN_KINDS = ("command", "python", "bulk", "verify")
NAME = re.compile(r"[a-z_][a-z0-9_]*")
RIGHT_NAME = re.compile(r"[a-z_]+:[a-z_]+")

_log = logging.getLogger(__name__)

Returned = TypeVar("Returned")


@dataclass(frozen=True, kw_only=True)
class CollectorRecords:
    """The records by name, and why the others were refused."""

    usable: Mapping[str, Collector]
    distributions: Mapping[str, str]
    """The distribution of every collector that is not ours."""

    refused: Mapping[str, ConfigurationError]
    """By name; no usable collector has one of these."""

    name_clashes: tuple[ConfigurationError, ...]
    """Refused because the name is taken, by a usable collector or a built-in kind of job."""

    @property
    def problems(self) -> tuple[ConfigurationError, ...]:
        return (*self.refused.values(), *self.name_clashes)


@dataclass(frozen=True, kw_only=True)
class InstalledCollectors(CollectorRecords):
    """The same with their parts loaded."""

    kinds: "Mapping[str, JobKind]"
    """Their kinds of job. That of a refused collector has no keys and says why."""

    components: "Mapping[str, Component]"
    """The tables of each collector that keeps some."""

    rights: Mapping[str, AnyRight]
    """Those of the engine and of usable collectors, by name."""


@cache
def collector_records() -> CollectorRecords:
    """The records only; none of their parts is loaded. Ours come first, each group by name."""
    usable: dict[str, Collector] = {}
    distributions: dict[str, str] = {}
    refused: dict[str, ConfigurationError] = {}
    clashes: list[ConfigurationError] = []
    for entry in sorted(entry_points(group=ENTRY_POINT_GROUP), key=_order):
        distribution = _distribution(entry)
        if entry.name in usable or entry.name in BUILT_IN_KINDS:
            clashes.append(refusal(entry.name, distribution, "the name is taken"))
            continue
        try:
            usable[entry.name] = _record(entry, distribution)
            if distribution != OUR_DISTRIBUTION:
                distributions[entry.name] = distribution
        except ConfigurationError as problem:
            refused[entry.name] = problem
    return CollectorRecords(
        usable=usable,
        distributions=distributions,
        refused={name: problem for name, problem in refused.items() if name not in usable},
        name_clashes=tuple(clashes),
    )


def audited_types() -> list[str]:
    """The types of objects in the audit log: the engine's, then those of usable collectors."""
    usable = collector_records().usable.values()
    return [*OBJECT_TYPES, *(audited for one in usable for audited in one.audited)]


def parts_verified() -> list[str]:
    """The parts of `tsuzuki verify`: the engine's own, then those of usable collectors."""
    usable = collector_records().usable.values()
    return list(dict.fromkeys(["ticks", *(one.verified_as for one in usable if one.verify)]))


@cache
def installed_collectors() -> InstalledCollectors:
    """Every collector with its kind of job and its tables."""
    from tsuzuki.config import JobKind  # noqa: PLC0415 -- slow to load, and the records do without
    from tsuzuki.store.schema.migrate import ENGINE  # noqa: PLC0415 -- loads the database's library

    records = collector_records()
    usable: dict[str, Collector] = {}
    refused = dict(records.refused)
    kinds: dict[str, JobKind] = {}
    components: dict[str, Component] = {}
    rights: dict[str, AnyRight] = {right.value: right for right in Right}
    for name, collector in records.usable.items():
        try:
            _check_name(name, records.distributions.get(name))
            kind, component = _parts(
                collector, records.distributions.get(name), (ENGINE, *components.values())
            )
            rights |= _rights(collector, records.distributions.get(name), taken=rights)
        except ConfigurationError as problem:
            refused[name] = problem
            continue
        usable[name], kinds[name] = collector, kind
        if component is not None:
            components[name] = component
    return InstalledCollectors(
        usable=usable,
        distributions=records.distributions,
        refused=refused,
        name_clashes=records.name_clashes,
        kinds={**{name: JobKind.refused(name, why) for name, why in refused.items()}, **kinds},
        components=components,
        rights=rights,
    )


def guarded(name: str, distribution: str | None, call: Callable[[], Returned]) -> Returned:
    """Call code of a collector. Whatever that of another distribution raises becomes the refusal of its
    collector. `distribution` is None for ours, whose errors are bugs."""
    try:
        return call()
    except (Exception, SystemExit) as problem:
        if distribution is None:
            raise
        raise refusal(name, distribution, brief(problem)) from problem


def usable_parts(load: Callable[[Collector], Returned | None]) -> dict[str, Returned]:
    """By collector, the part that `load` gives. One that cannot be loaded is logged and left out, so that a server can
    serve the others."""
    records = collector_records()
    found: dict[str, Returned] = {}
    for name, collector in records.usable.items():
        try:
            part = guarded(name, records.distributions.get(name), partial(load, collector))
        except ConfigurationError as problem:
            _log.warning("%s", problem.message)
            continue
        if part is not None:
            found[name] = part
    return found


def refusal(name: str, distribution: str, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"collector {name!r} cannot be used: {distribution}: {why}",
        hint=f"Repair or uninstall {distribution}, which adds {name!r} to {ENTRY_POINT_GROUP}.",
        code="collector_refused",
    )


def _distribution(entry: EntryPoint) -> str:
    return entry.dist.name if entry.dist else "an unknown distribution"


def _order(entry: EntryPoint) -> tuple[bool, str, str]:
    distribution = _distribution(entry)
    return (distribution != OUR_DISTRIBUTION, entry.name, distribution)


def _record(entry: EntryPoint, distribution: str) -> Collector:
    if not NAME.fullmatch(entry.name):
        raise refusal(
            entry.name, distribution, "a name may only contain lower-case letters, digits and _"
        )
    record = guarded(entry.name, distribution, entry.load)
    if not isinstance(record, Collector):
        raise refusal(entry.name, distribution, f"{entry.value} is not a Collector")
    if record.name != entry.name:
        raise refusal(entry.name, distribution, f"{entry.value} names itself {record.name!r}")
    return record


def _check_name(name: str, distribution: str | None) -> None:
    """A section has the name of its collector. Raises `ConfigurationError` if another key has it."""
    if distribution is None:
        return
    from tsuzuki.config.schema.config_file import file_keys  # noqa: PLC0415 -- only a plug-in's name is checked

    if name in file_keys():
        raise refusal(name, distribution, "the name is reserved for a key of tsuzuki.yaml")


def _parts(
    collector: Collector, distribution: str | None, others: "tuple[Component, ...]"
) -> "tuple[JobKind, Component | None]":
    def load() -> "tuple[JobKind, Component | None]":
        kind: JobKind = collector.load(collector.kind)
        if kind.name != collector.name:
            raise ValueError(f"its job type is {kind.name!r}")
        component: Component | None = (
            collector.load(collector.component) if collector.component else None
        )
        if component is not None:
            _check_component(component, others)
        return kind, component

    kind, component = guarded(collector.name, distribution, load)
    if component is not None and distribution is not None:
        component = replace(component, distribution=distribution)
    return kind, component


def _rights(
    collector: Collector, distribution: str | None, *, taken: Collection[str]
) -> dict[str, CollectorRight]:
    if collector.rights is None:
        return {}

    def load(target: str) -> dict[str, CollectorRight]:
        rights = {str(right): right for right in collector.load(target)}
        for name, right in rights.items():
            if not isinstance(right, CollectorRight) or not RIGHT_NAME.fullmatch(name):
                raise ValueError(
                    f"its permission {name!r} is not a CollectorRight such as code:read"
                )
            if name in taken:
                raise ValueError(f"its permission {name!r} is taken")
        return rights

    return guarded(collector.name, distribution, partial(load, collector.rights))


def _check_component(component: "Component", others: "tuple[Component, ...]") -> None:
    """Raises `ValueError` for tables that cannot be migrated. Two components with one table, or one version
    table, would migrate each other's."""
    if not NAME.fullmatch(component.name):
        raise ValueError(f"its tables are named {component.name!r}, which is not a plain name")
    component.newest()
    for other in others:
        shared = sorted({*component.metadata.tables} & {*other.metadata.tables})
        if shared or component.name == other.name:
            names = ", ".join(shared) or component.name
            raise ValueError(f"its tables ({names}) belong to {other.name}")


def brief(problem: BaseException) -> str:
    if isinstance(problem, TsuzukiError):
        return problem.message
    return f"{type(problem).__name__}: {problem}"
