"""Verification of one collector in a test: its context, and what it yields."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields

from tsuzuki.model.job import JobSpec
from tsuzuki.model.verification import Verified
from tsuzuki.wiring.collector import CollectorContext, VerifyContext

Verify = Callable[[VerifyContext], Iterator[Verified]]


def verified(
    verify: Verify,
    context: CollectorContext,
    *,
    jobs: Sequence[JobSpec] = (),
    calls_max: int = 20,
    advance: Callable[[int], None] = lambda _compared: None,
) -> list[Verified]:
    given = {field.name: getattr(context, field.name) for field in fields(CollectorContext)}
    return [*verify(VerifyContext(**given, jobs=jobs, calls_max=calls_max, advance=advance))]


def faults(found: Sequence[Verified]) -> list[tuple[str, str]]:
    """Kind and name of every named fault."""
    return [(one.kind.value, one.name) for subject in found for one in subject.named]
