"""A tick that meets unfinished runs of its own job."""

import pytest

from tsuzuki.model.overlap import ConcurrencyPolicy, Overlap, decide_overlap

FORBID, ALLOW, REPLACE = ConcurrencyPolicy


@pytest.mark.parametrize("policy", ConcurrencyPolicy)
@pytest.mark.parametrize(("live", "limit"), [(0, None), (0, 1), (2, 3)])
def test_below_the_limit_every_policy_starts(
    policy: ConcurrencyPolicy, live: int, limit: int | None
) -> None:
    assert decide_overlap(policy, live=live, limit=limit) is Overlap.START


@pytest.mark.parametrize(("live", "limit"), [(1, None), (1, 1), (3, 3), (4, 3)])
def test_at_the_limit_the_policy_decides(live: int, limit: int | None) -> None:
    assert decide_overlap(FORBID, live=live, limit=limit) is Overlap.SKIP
    assert decide_overlap(REPLACE, live=live, limit=limit) is Overlap.REPLACE
    assert decide_overlap(ALLOW, live=live, limit=limit) is Overlap.START
