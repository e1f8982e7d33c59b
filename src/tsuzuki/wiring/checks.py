"""The checks of all usable collectors, one after the other. One that fails to check is a finding of its own."""

from collections.abc import Iterator
from dataclasses import fields

from tsuzuki.model.check import Check, fault, fault_of
from tsuzuki.model.errors import TsuzukiError
from tsuzuki.wiring.collector import CheckContext
from tsuzuki.wiring.resources import Resources


def collector_checks(resources: Resources, has_tables: bool) -> Iterator[Check]:
    for name, problem in resources.refused.items():
        yield fault_of(f"collector {name}", problem)
    for name, collector in resources.usable_collectors().items():
        if collector.checks is None:
            continue
        try:
            yield from collector.load(collector.checks)(_context(resources, name, has_tables))
        except TsuzukiError as problem:
            yield fault_of(name, problem)
        except ModuleNotFoundError as missing:
            step = f"Install it with: pip install 'tsuzuki[{name}]'"
            yield fault(name, f"library {missing.name} is not installed", step)
        except Exception as problem:  # noqa: BLE001 -- a plug-in may raise anything, and the rest is still checked
            yield fault(name, f"cannot be checked: {type(problem).__name__}: {problem}", None)


def _context(resources: Resources, name: str, has_tables: bool) -> CheckContext:
    context = resources.collector_context(name)
    given = {field.name: getattr(context, field.name) for field in fields(context)}
    jobs = [job for job in resources.configuration.jobs if job.handler == name and job.enabled]
    is_in_use = has_tables and resources.tables.is_in_use(name)
    return CheckContext(**given, jobs=jobs, has_tables=has_tables, is_in_use=is_in_use)
