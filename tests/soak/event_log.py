"""What happened in a soak and when, one line each."""

import time
from collections.abc import Callable


class EventLog:
    """Each line has the seconds since the start, and is told as soon as it is known."""

    def __init__(self, tell: Callable[[str], object] = lambda _line: None) -> None:
        self.lines: list[str] = []
        self._tell = tell
        self.start()

    def start(self) -> None:
        """From here on the seconds are counted."""
        self._started = time.monotonic()

    def add(self, *lines: str) -> None:
        for line in lines:
            told = f"{time.monotonic() - self._started:6.1f} {line}"
            self.lines.append(told)
            self._tell(told)
