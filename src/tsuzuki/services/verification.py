"""Verification: compare stored data with its source, part by part, and report what is missing.

The engine's part covers the ticks; collectors provide the other parts. Nothing is changed.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, TypeAlias

from tsuzuki.config.schema.job_kinds import VERIFY
from tsuzuki.model.errors import IncompleteRun, UsageError
from tsuzuki.model.suggestion import did_you_mean
from tsuzuki.model.verification import PartResult, Verified, failure_text, part_result
from tsuzuki.services.ticks import Ticks
from tsuzuki.store.sql.database import Database

if TYPE_CHECKING:
    from tsuzuki.engine.run_context import RunContext

HANDLER = "verify"
TICKS = "ticks"
DAYS = 30
CALLS = 20


@dataclass(frozen=True, kw_only=True)
class Wanted:
    """What to verify. `since` and `until` bound the ticks; `calls_max` bounds the calls to a source with a quota. No
    `parts` means all."""

    parts: Sequence[str] = ()
    since: datetime | None = None
    until: datetime | None = None
    calls_max: int = CALLS


Part: TypeAlias = Callable[[Wanted, Callable[[int], None]], Iterator[Verified]]
"""Verifies a part of a collector; its second argument is told how many more things were compared."""


def _ignore(_part: str, _compared: int) -> None:
    pass


class Verification:
    """`parts` are those of the collectors, by name."""

    def __init__(self, *, database: Database, parts: Mapping[str, Part]) -> None:
        self._database = database
        self._parts = {TICKS: self._ticks, **{n: p for n, p in parts.items() if n != TICKS}}

    @property
    def parts(self) -> tuple[str, ...]:
        """The names of all parts."""
        return tuple(self._parts)

    def check(self, wanted: Wanted) -> None:
        """Raises `UsageError` for an unknown part, or if `since` is not before `until`."""
        for name in wanted.parts:
            if name not in self._parts:
                raise UsageError(
                    f"unknown part {name!r}",
                    hint=did_you_mean(name, self._parts) + f"Parts: {', '.join(self._parts)}.",
                    code="part_unknown",
                )
        if wanted.since and wanted.until and wanted.since >= wanted.until:
            raise UsageError("`since` must be before `until`", code="verify_dates")

    def verify(
        self, wanted: Wanted, *, on_progress: Callable[[str, int], None] = _ignore
    ) -> Iterator[PartResult]:
        """The result of each part, as soon as it is known. `on_progress` is told the part and how many more things
        were compared; what it raises ends the verification."""
        self.check(wanted)
        for name in dict.fromkeys(wanted.parts or self._parts):

            def advance(compared: int, part: str = name) -> None:
                on_progress(part, compared)

            yield part_result(name, self._parts[name](wanted, advance))

    def _ticks(self, wanted: Wanted, advance: Callable[[int], None]) -> Iterator[Verified]:
        since = wanted.since or self._database.clock.now() - timedelta(days=DAYS)
        verify = Ticks(database=self._database).verify
        return verify(since=since, until=wanted.until, advance=advance)


def verification_handler(verification: Verification) -> "Callable[[RunContext], dict[str, Any]]":
    """Executes jobs of `type: verify`. The run fails with `IncompleteRun`, which has the whole result, if anything is
    missing; its log names the faults."""

    def verify(run: "RunContext") -> dict[str, Any]:
        compared = 0

        def on_progress(_part: str, more: int) -> None:
            nonlocal compared
            run.raise_if_cancelled()
            compared += more
            run.progress(compared)

        results: list[PartResult] = []
        for result in verification.verify(_wanted_by(run), on_progress=on_progress):
            results.append(result)
            for line in (result.headline, *result.lines(), *result.notes):
                run.log(line)
            run.raise_if_cancelled()
        found = {"ok": True, "parts": [result.as_dict() for result in results]}
        if any(not result.is_ok for result in results):
            raise IncompleteRun(
                failure_text(results),
                result={**found, "ok": False},
                code="verification_failed",
            )
        return found

    return verify


def _wanted_by(run: "RunContext") -> Wanted:
    """What the job's options say, and the run's arguments before them; ticks up to the due time of the run."""
    try:
        said = VERIFY.options_model.model_validate({**run.options, **run.arguments})
    except ValueError as problem:
        raise UsageError(f"invalid run arguments: {problem}") from None
    options = said.model_dump()
    return Wanted(
        parts=options["parts"],
        since=run.scheduled_for - timedelta(days=options["days"]),
        calls_max=options["calls"],
    )
