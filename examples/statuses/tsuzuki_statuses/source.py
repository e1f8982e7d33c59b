"""The source: fetches and validates one page of an account's statuses."""

from dataclasses import dataclass

from tsuzuki.model.clock import SystemClock
from tsuzuki.outward.http import HttpClient

BEFORE_THE_FIRST = "1"


@dataclass(frozen=True, kw_only=True)
class Status:
    """A status, as stored."""

    id: str
    url: str
    created_at: str
    content: str


class Mastodon:
    """Fetches public statuses, which need no token. Failures are raised as the kit's source errors."""

    def __init__(self, section):
        self._page_size = section.page_size
        self._http = HttpClient(service="Mastodon", base_url=section.base_url, clock=SystemClock())

    def __enter__(self):
        return self

    def __exit__(self, *_exc):
        self._http.close()

    def page_after(self, account, newest_id):
        """The statuses directly after `newest_id`, oldest first; empty if there are no newer ones."""
        answer = self._http.get(
            f"/api/v1/accounts/{account}/statuses",
            {"limit": self._page_size, "min_id": newest_id or BEFORE_THE_FIRST},
        )
        if answer.status != 200:
            raise self._http.failure_of(answer)
        try:
            page = [
                Status(
                    id=one["id"],
                    url=one["url"] or one["uri"],
                    created_at=one["created_at"],
                    content=one["content"],
                )
                for one in answer.json()
            ]
        except (ValueError, TypeError, KeyError):
            raise self._http.malformed("no list of statuses") from None
        return sorted(page, key=lambda one: int(one.id))
