"""A soak in which one guard is broken must find fault, or it proves nothing."""

from pathlib import Path

import pytest

from soak.broken_guards import BrokenGuard
from soak.command import soak

SEED = 14
SECONDS = 4.0
FOUND = {
    BrokenGuard.POSTS: r"posts: \('/articles/\S+', '[^']+'\) [2-9] times",
    BrokenGuard.MAILS: r"mailed books: .+ [2-9] times",
    BrokenGuard.PAYMENTS: r"step \(\d+, 'summary'\) stored [2-9] times",
    BrokenGuard.BOOKS: r"(?m)^books: \d+ missing",
    BrokenGuard.COMMITS: r"(?m)^commits: \d+ missing",
    BrokenGuard.TOTALS: r"commits by month of \w+: \[\d+, \d+, \d+\] instead of",
    BrokenGuard.SYMBOLS: r"index: \d+ missing, .*part_0\.py",
    BrokenGuard.QUOTA: r"quota: no run has stopped for its 2 calls, [3-9] requests came",
    BrokenGuard.FENCE: r"piece-\d+: attempt \d+ after \d+",
}


@pytest.mark.full
@pytest.mark.timeout(400)
@pytest.mark.parametrize("guard", FOUND)
def test_a_soak_without_a_guard_finds_what_that_lets_happen(
    tmp_path: Path, guard: BrokenGuard
) -> None:
    with pytest.raises(AssertionError, match=FOUND[guard]):
        soak(SEED, SECONDS, kept=tmp_path, broken=guard)


def test_every_guard_is_broken_once() -> None:
    assert set(FOUND) == set(BrokenGuard)
