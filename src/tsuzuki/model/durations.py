"""Durations of runs as a histogram: powers of two from a 64th of a second to a day and a half.

A bucket has a number: 0 for a run that never started, n for one that took at most the n-th limit. Two buckets
that stand side by side differ by a factor of two, so a percentile read from one is off by no more than that.
"""

from bisect import bisect_left
from collections.abc import Mapping

LIMITS_SECONDS = tuple(2.0**exponent for exponent in range(-6, 18))
NEVER_STARTED = 0
DURATIONS_MIN = 10
"""Percentiles of fewer runs say nothing about how long a job takes."""
LAST = len(LIMITS_SECONDS) + 1
"""The bucket of all that took longer than the last limit."""


def bucket_of(seconds: float | None) -> int:
    return NEVER_STARTED if seconds is None else 1 + bisect_left(LIMITS_SECONDS, seconds)


def percentile(counts: Mapping[int, int], share: float) -> float | None:
    """The duration that `share` of the started runs did not exceed, interpolated within its bucket; None if
    none has started."""
    started = {bucket: n for bucket, n in sorted(counts.items()) if bucket != NEVER_STARTED and n}
    total = sum(started.values())
    if not total:
        return None
    wanted, seen = share * total, 0.0
    for bucket, n in started.items():
        if seen + n >= wanted:
            low, high = bounds(bucket)
            return low + (high - low) * (wanted - seen) / n
        seen += n
    return bounds(max(started))[1]


def bounds(bucket: int) -> tuple[float, float]:
    """From where to where a bucket reaches, in seconds. The last one is shown as reaching twice as far."""
    if not NEVER_STARTED < bucket <= LAST:
        raise ValueError(f"there is no bucket {bucket} of durations")
    low = LIMITS_SECONDS[bucket - 2] if bucket > 1 else 0.0
    return low, low * 2 if bucket == LAST else LIMITS_SECONDS[bucket - 1]
