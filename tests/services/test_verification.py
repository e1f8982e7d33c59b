"""The service of verification: parts one after the other, errors as problems, results of bounded size."""

from collections.abc import Callable, Iterator

import pytest

from tsuzuki.model.errors import ServiceUnreachable, UsageError
from tsuzuki.model.run_limits import result_text
from tsuzuki.model.verification import (
    ERROR_NAMES_MAX,
    NAMED_MAX,
    SUBJECTS_MAX,
    Comparison,
    FaultKind,
    Verified,
    failure_text,
    part_result,
)
from tsuzuki.services.verification import Part, Verification, Wanted
from tsuzuki.store.sql.database import Database


def subjects(count: int, *, faults: int = 0) -> Iterator[Verified]:
    for number in range(count):
        comparison = Comparison(f"subject {number}")
        comparison.compared = 10
        for fault in range(faults):
            comparison.add(FaultKind.MISSING, f"thing {fault}")
        yield comparison.result()


def whole(_wanted: Wanted, advance: Callable[[int], None]) -> Iterator[Verified]:
    advance(10)
    yield from subjects(1)


def unavailable(_wanted: Wanted, _advance: Callable[[int], None]) -> Iterator[Verified]:
    yield from subjects(2)
    raise ServiceUnreachable("the source does not answer")


def service(database: Database, **parts: Part) -> Verification:
    return Verification(database=database, parts=parts)


def test_all_parts_are_verified_unless_some_are_named(database: Database) -> None:
    verification = service(database, one=whole, two=whole)
    assert verification.parts == ("ticks", "one", "two")
    assert [one.part for one in verification.verify(Wanted())] == ["ticks", "one", "two"]
    named = verification.verify(Wanted(parts=["two", "two"]))
    assert [one.part for one in named] == ["two"]


def test_an_unknown_part_is_refused_before_anything_is_verified(database: Database) -> None:
    with pytest.raises(UsageError, match="unknown part 'on'") as refused:
        next(service(database, one=whole).verify(Wanted(parts=["one", "on"])))
    assert "one" in str(refused.value.hint)


def test_an_error_is_the_problem_of_its_part_and_the_others_are_verified(
    database: Database,
) -> None:
    verification = service(database, one=unavailable, two=whole)
    _, one, two = verification.verify(Wanted())
    assert (one.is_ok, one.problem, one.subjects) == (False, "the source does not answer", 2)
    assert two.is_ok


def test_no_collector_takes_the_place_of_the_ticks(database: Database) -> None:
    assert service(database, ticks=unavailable).parts == ("ticks",)
    assert all(one.is_ok for one in service(database, ticks=unavailable).verify(Wanted()))


def test_progress_names_the_part(database: Database) -> None:
    told: list[tuple[str, int]] = []
    verification = service(database, one=whole)
    for _ in verification.verify(
        Wanted(parts=["one"]), on_progress=lambda part, more: told.append((part, more))
    ):
        pass
    assert told == [("one", 10)]


def test_what_a_result_names_is_bounded_and_what_it_counts_is_not() -> None:
    found = part_result("one", subjects(1000, faults=100))
    assert (found.subjects, found.faulty, found.compared) == (1000, 1000, 10_000)
    assert (found.faults, found.counts) == (100_000, {FaultKind.MISSING: 100_000})
    assert len(found.shown) == SUBJECTS_MAX
    assert {len(one.named) for one in found.shown} == {NAMED_MAX}
    assert len(result_text(found.as_dict())) < 100_000


def test_the_error_of_a_failed_verification_says_how_much_and_names_the_first() -> None:
    faulty, fine = part_result("one", subjects(3, faults=4)), part_result("two", subjects(1))
    head, *names = failure_text([faulty, fine]).splitlines()
    assert head == "verification failed: one: 12 faults in 3 of 3"
    assert names[0] == "subject 0: missing: thing 0"
    assert len(names) == ERROR_NAMES_MAX + 1
    assert names[-1] == "…"
