"""Progress of a run: count, rate, and estimated remaining time."""

from collections import deque
from dataclasses import dataclass

from tsuzuki.model.errors import UsageError

WINDOW_SECONDS = 10.0
_SAMPLES_PER_WINDOW = 50
_ELAPSED_MIN_SECONDS = 0.001


@dataclass(frozen=True, kw_only=True)
class Progress:
    """`processed` of `total` items, the rate over the last seconds, and the estimate that follows from it.

    `total` is None while it is unknown and may be 0 for an empty job. `remaining_seconds` is None while there
    is no estimate.
    """

    processed: int
    total: int | None
    rate_per_second: float
    remaining_seconds: float | None

    @property
    def ratio(self) -> float | None:
        """From 0 to 1; an empty job is done. None while the total is unknown."""
        if self.total is None:
            return None
        return self.processed / self.total if self.total else 1.0


class ProgressMeter:
    """Turns the counts a handler reports into a `Progress`, over a sliding window of time.

    Keeps a bounded number of samples, however often it is updated.
    """

    def __init__(self, *, window_seconds: float = WINDOW_SECONDS) -> None:
        if window_seconds <= 0:
            raise ValueError("window_seconds must be positive")
        self._window_seconds = window_seconds
        self._samples: deque[tuple[float, int]] = deque()

    def update(self, processed: int, total: int | None, at_seconds: float) -> Progress:
        """Record a count; `at_seconds` is of a monotonic clock."""
        _require_valid(processed, total)
        rate = self._rate_per_second(processed, at_seconds)
        return Progress(
            processed=processed,
            total=total,
            rate_per_second=rate,
            remaining_seconds=_remaining_seconds(processed, total, rate),
        )

    def _rate_per_second(self, processed: int, at_seconds: float) -> float:
        self._add_sample(processed, at_seconds)
        first_seconds, first_processed = self._samples[0]
        elapsed_seconds = at_seconds - first_seconds
        # Over less than a millisecond, the clock's resolution would dominate the rate.
        if elapsed_seconds < _ELAPSED_MIN_SECONDS:
            return 0.0
        return (processed - first_processed) / elapsed_seconds

    def _add_sample(self, processed: int, at_seconds: float) -> None:
        samples = self._samples
        if samples and processed < samples[-1][1]:
            # The handler counts from the start again; older samples do not apply.
            samples.clear()
        spacing_seconds = self._window_seconds / _SAMPLES_PER_WINDOW
        if not samples or at_seconds - samples[-1][0] >= spacing_seconds:
            samples.append((at_seconds, processed))
        while len(samples) > 1 and samples[1][0] <= at_seconds - self._window_seconds:
            samples.popleft()


def _require_valid(processed: int, total: int | None) -> None:
    if processed < 0 or (total is not None and processed > total):
        raise UsageError(
            f"invalid progress: {processed} of {'unknown' if total is None else total}",
            hint="Report how many are done, from 0 to the total, or None as the total if it is "
            "unknown.",
        )


def _remaining_seconds(processed: int, total: int | None, rate: float) -> float | None:
    if total is None:
        return None
    if processed == total:
        return 0.0
    return (total - processed) / rate if rate > 0 else None
