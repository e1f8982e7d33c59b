"""A rate gate: a pause that one host asked for, kept by every thread that asks it."""

from collections.abc import Callable

from tsuzuki.model.clock import Clock


class RateGate:
    """Whether a host may be asked now. A pause holds for every thread that asks it."""

    def __init__(self, clock: Clock, wait: Callable[[float], None]) -> None:
        self._clock = clock
        self._wait = wait
        self._closed_until = 0.0

    def close(self, seconds: float) -> None:
        """Pause the host."""
        self._closed_until = max(self._closed_until, self._clock.monotonic() + seconds)

    def wait_until_open(self) -> None:
        """Wait out the pause. Raises `RunStopped` if the run must stop meanwhile."""
        while (left := self._closed_until - self._clock.monotonic()) > 0:
            self._wait(left)
