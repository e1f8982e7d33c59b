"""The histogram of durations."""

import math
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.model.durations import (
    LIMITS_SECONDS,
    NEVER_STARTED,
    bounds,
    bucket_of,
    percentile,
)

SECONDS = st.floats(0, LIMITS_SECONDS[-1] * 1.5)


@given(SECONDS)
def test_a_duration_is_within_the_bounds_of_its_bucket(seconds: float) -> None:
    low, high = bounds(bucket_of(seconds))
    assert low <= seconds <= high


@given(st.lists(SECONDS, min_size=1), st.floats(0, 1))
def test_a_percentile_is_in_the_bucket_of_the_exact_one(seconds: list[float], share: float) -> None:
    found = percentile(Counter(map(bucket_of, seconds)), share)
    assert found is not None
    exact = sorted(seconds)[max(1, math.ceil(share * len(seconds))) - 1]
    low, high = bounds(bucket_of(exact))
    assert low <= found <= high


def test_what_never_started_has_no_duration() -> None:
    assert bucket_of(None) == NEVER_STARTED
    assert percentile({NEVER_STARTED: 7}, 0.5) is None
    with pytest.raises(ValueError, match="no bucket 0"):
        bounds(NEVER_STARTED)


def test_the_median_of_equal_halves_is_between_them() -> None:
    assert percentile({bucket_of(1.0): 5, bucket_of(4.0): 5}, 0.5) == 1.0
