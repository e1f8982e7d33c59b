"""The parts of `tsuzuki verify` that collectors add, each loaded when it is verified."""

from collections.abc import Callable, Iterator
from dataclasses import fields
from datetime import timedelta
from functools import partial

from tsuzuki.model.errors import ConfigurationError, TsuzukiError
from tsuzuki.model.verification import Verified
from tsuzuki.services.verification import DAYS, Part, Verification, Wanted
from tsuzuki.store import jobs
from tsuzuki.wiring.collector import Collector, VerifyContext
from tsuzuki.wiring.collectors import brief, guarded, refusal
from tsuzuki.wiring.resources import Resources


def join_verification(resources: Resources) -> Verification:
    return Verification(database=resources.database, parts=_collector_parts(resources))


def _collector_parts(resources: Resources) -> dict[str, Part]:
    """By name, the parts of all collectors. That of a refused one raises why."""
    parts: dict[str, Part] = {}
    for name, collector in resources.collectors.usable.items():
        if collector.verify is not None:
            part = partial(_verified, resources, name, collector, collector.verify)
            parts.setdefault(collector.verified_as, part)
    return parts


def _verified(
    resources: Resources,
    name: str,
    collector: Collector,
    target: str,
    wanted: Wanted,
    advance: Callable[[int], None],
) -> Iterator[Verified]:
    if name in resources.refused:
        raise resources.refused[name]
    context = _context(resources, name, wanted, advance)
    if not context.jobs and not resources.tables.is_in_use(name):
        return  # it was never used here, so it has stored nothing
    distribution = resources.collectors.distributions.get(name)
    try:
        verify = guarded(name, distribution, partial(collector.load, target))
    except ConfigurationError as problem:
        if problem.specific_code == "extra_missing" and not context.jobs:
            return  # it is not installed, so it has stored nothing from here
        raise
    resources.tables.use(name)
    try:
        yield from verify(context)
    except TsuzukiError:
        raise
    except Exception as problem:
        if distribution is None:
            raise
        raise refusal(name, distribution, brief(problem)) from problem


def _context(
    resources: Resources, name: str, wanted: Wanted, advance: Callable[[int], None]
) -> VerifyContext:
    context = resources.collector_context(name)
    given = {field.name: getattr(context, field.name) for field in fields(context)}
    with resources.database.read() as connection:
        stored = jobs.find_by_handler(connection, name, [])
    specs = [job.spec for job in stored if job.spec.enabled]
    return VerifyContext(
        **given,
        jobs=specs,
        since=wanted.since or resources.database.clock.now() - timedelta(days=DAYS),
        calls_max=wanted.calls_max,
        advance=advance,
    )
