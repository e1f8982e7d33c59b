"""How far a run is, how fast it goes, and how long it may still take."""

from collections import deque
from dataclasses import dataclass

from tsuzuki.model.errors import UsageError

WINDOW_SECONDS = 10.0
_SAMPLES_PER_WINDOW = 50
_ELAPSED_MIN_SECONDS = 0.001


@dataclass(frozen=True, kw_only=True)
class Progress:
    """`processed` of `total` things, and what the last seconds say about the rest.

    `total` is None while it is unknown and may be 0 for an empty job. `remaining_seconds` is None
    while nobody can tell.
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

    Holds a bounded number of samples, however often it is told something.
    """

    def __init__(self, *, window_seconds: float = WINDOW_SECONDS) -> None:
        if window_seconds <= 0:
            raise ValueError("a rate needs some time to be measured over")
        self._window_seconds = window_seconds
        self._samples: deque[tuple[float, int]] = deque()

    def update(self, processed: int, total: int | None, at_seconds: float) -> Progress:
        """Take note of a count at a moment of a clock that never steps back."""
        _require_sensible(processed, total)
        rate = self._rate_per_second(processed, at_seconds)
        return Progress(
            processed=processed,
            total=total,
            rate_per_second=rate,
            remaining_seconds=_remaining_seconds(processed, total, rate),
        )

    def _rate_per_second(self, processed: int, at_seconds: float) -> float:
        self._remember(processed, at_seconds)
        began_seconds, began_processed = self._samples[0]
        elapsed_seconds = at_seconds - began_seconds
        # Over less than a millisecond a rate says more about the clock than about the work.
        if elapsed_seconds < _ELAPSED_MIN_SECONDS:
            return 0.0
        return (processed - began_processed) / elapsed_seconds

    def _remember(self, processed: int, at_seconds: float) -> None:
        samples = self._samples
        if samples and processed < samples[-1][1]:
            # Somebody counts anew; what came before says nothing about it.
            samples.clear()
        spacing_seconds = self._window_seconds / _SAMPLES_PER_WINDOW
        if not samples or at_seconds - samples[-1][0] >= spacing_seconds:
            samples.append((at_seconds, processed))
        while len(samples) > 1 and samples[1][0] <= at_seconds - self._window_seconds:
            samples.popleft()


def _require_sensible(processed: int, total: int | None) -> None:
    if processed < 0 or (total is not None and processed > total):
        raise UsageError(
            f"progress cannot be {processed} of {'unknown' if total is None else total}",
            hint="Report what is done so far, from 0 up to the total; None if that is unknown.",
        )


def _remaining_seconds(processed: int, total: int | None, rate: float) -> float | None:
    if total is None:
        return None
    if processed == total:
        return 0.0
    return (total - processed) / rate if rate > 0 else None
