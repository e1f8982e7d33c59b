"""The limits on requests and on posts, and the headers that tell of the one that is nearer."""

from dataclasses import dataclass, field
from datetime import datetime, timedelta

from tsuzuki.model.clock import Clock

REQUESTS_PERIOD_SECONDS = 5 * 60
POSTS_PERIOD_SECONDS = 3 * 60 * 60
GENEROUS = 1_000_000
"""What the headers promise where nothing is limited."""


@dataclass
class ThrottleWindow:
    """How often something happened in the running period, for each account."""

    clock: Clock
    period_seconds: int
    limit: int | None = None
    _counts: dict[tuple[int, int], int] = field(default_factory=dict)

    def remaining(self, account_id: int) -> int:
        used = self._counts.get((account_id, self._period()), 0)
        return max((self.limit or GENEROUS) - used, 0)

    def count(self, account_id: int) -> None:
        key = (account_id, self._period())
        self._counts = {one: used for one, used in self._counts.items() if one[1] == key[1]}
        self._counts[key] = self._counts.get(key, 0) + 1

    def reset_at(self) -> datetime:
        """When the next period starts."""
        now = self.clock.now()
        elapsed = int(now.timestamp()) % self.period_seconds
        return now + timedelta(seconds=self.period_seconds - elapsed)

    def headers(self, account_id: int, *, epoch: bool) -> dict[str, str]:
        reset = self.reset_at()
        return {
            "X-RateLimit-Limit": str(self.limit or GENEROUS),
            "X-RateLimit-Remaining": str(self.remaining(account_id)),
            "X-RateLimit-Reset": str(int(reset.timestamp())) if epoch else timestamp(reset, 6),
        }

    def _period(self) -> int:
        return int(self.clock.now().timestamp()) // self.period_seconds


def timestamp(moment: datetime, digits: int = 3) -> str:
    """As the API writes a moment in UTC."""
    timespec = {3: "milliseconds", 6: "microseconds"}[digits]
    return moment.isoformat(timespec=timespec).replace("+00:00", "Z")
