"""The interval between two lines of progress where there is no terminal."""

from tsuzuki.model.clock import Clock

LINE_SECONDS = 5.0
LINE_SECONDS_MAX = 60.0
"""Between two lines that say only that it goes on."""


class ProgressInterval:
    """Begins when it is made, and anew whenever it is over."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._began_at = clock.monotonic()

    def is_over(self) -> bool:
        now = self._clock.monotonic()
        if now - self._began_at < LINE_SECONDS:
            return False
        self._began_at = now
        return True
