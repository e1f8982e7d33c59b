"""The limit on requests by the minute, and the headers that tell of it."""

import threading
from email.utils import formatdate

from tsuzuki.model.clock import Clock
from tsuzuki.sandbox.exchange import Response

WINDOW_SECONDS = 60
GENEROUS = 1_000_000
"""What the headers promise where nothing is limited."""


class Throttle:
    """Counts the requests of the running minute; over `per_minute` of them are turned away."""

    def __init__(self, clock: Clock, per_minute: int | None) -> None:
        self._clock = clock
        self._limit = per_minute or GENEROUS
        self._lock = threading.Lock()
        self._window = 0
        self._observed = 0

    def count(self) -> tuple[dict[str, str], Response | None]:
        """The headers for this request's answer, and that answer itself if the limit is passed."""
        now = int(self._clock.now().timestamp())
        with self._lock:
            if self._window != now // WINDOW_SECONDS:
                self._window, self._observed = now // WINDOW_SECONDS, 0
            self._observed += 1
            observed = self._observed
        reset = (now // WINDOW_SECONDS + 1) * WINDOW_SECONDS
        headers = {
            "RateLimit-Limit": str(self._limit),
            "RateLimit-Name": "throttle_authenticated_api",
            "RateLimit-Observed": str(observed),
            "RateLimit-Remaining": str(max(self._limit - observed, 0)),
            "RateLimit-Reset": str(reset),
            "RateLimit-ResetTime": formatdate(reset, usegmt=True),
        }
        if observed <= self._limit:
            return headers, None
        headers["Retry-After"] = str(reset - now)
        return headers, Response(status=429, body=b"Retry later\n", content_type="text/plain")
