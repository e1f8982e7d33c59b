"""Verification of one collector in a test: its context, and what it yields."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import fields
from datetime import UTC, datetime

from tsuzuki.model.job import JobSpec
from tsuzuki.model.verification import Verified
from tsuzuki.wiring.collector import CollectorContext, VerifyContext

Verify = Callable[[VerifyContext], Iterator[Verified]]


def verified(
    verify: Verify,
    context: CollectorContext,
    *,
    jobs: Sequence[JobSpec] = (),
    since: datetime = datetime(2000, 1, 1, tzinfo=UTC),
    calls_max: int = 20,
    advance: Callable[[int], None] = lambda _compared: None,
) -> list[Verified]:
    given = {field.name: getattr(context, field.name) for field in fields(CollectorContext)}
    verifying = VerifyContext(**given, jobs=jobs, since=since, calls_max=calls_max, advance=advance)
    return [*verify(verifying)]


def faults(found: Sequence[Verified]) -> list[tuple[str, str]]:
    """Kind and name of every named fault."""
    return [(one.kind.value, one.name) for subject in found for one in subject.named]
