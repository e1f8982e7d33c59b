"""Accounts, statuses and media of the server, and the pages of an account's statuses."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from itertools import islice

from tsuzuki.model.clock import Clock

from .errors import not_found
from .form import MastodonForm
from .records import Account, Status, UploadedMedia

PAGE_SIZE_DEFAULT = 20
PAGE_SIZE_MAX = 40
PUBLIC = ("public", "unlisted")


class Store:
    """Everything that is kept. Deleted statuses stay in `all_statuses`, marked."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last_id = 0
        self._by_id: dict[int, Status] = {}
        self._by_account: dict[int, list[Status]] = {}
        self._replies: dict[int, list[Status]] = {}
        self._deleted_counts: Counter[int] = Counter()
        self.accounts: list[Account] = []
        self.all_statuses: list[Status] = []
        self.media: dict[int, UploadedMedia] = {}

    def new_id(self) -> int:
        """Growing with time: milliseconds, then a number that keeps ids of one millisecond apart."""
        milliseconds = int(self._clock.now().timestamp() * 1000)
        self._last_id = max(self._last_id + 1, milliseconds << 16)
        return self._last_id

    def add_account(self, username: str, token: str) -> Account:
        account = Account(
            id=self.new_id(), username=username, token=token, created_at=self._clock.now()
        )
        self.accounts.append(account)
        return account

    def account_with_token(self, token: str) -> Account | None:
        return next((one for one in self.accounts if one.token == token), None)

    def account(self, number: str) -> Account:
        found = next((one for one in self.accounts if str(one.id) == number), None)
        if found is None:
            raise not_found()
        return found

    def add(self, status: Status) -> None:
        self.all_statuses.append(status)
        self._by_id[status.id] = status
        self._by_account.setdefault(status.account.id, []).append(status)
        if status.in_reply_to_id:
            self._replies.setdefault(status.in_reply_to_id, []).append(status)

    def delete(self, status: Status) -> None:
        status.deleted = True
        self._deleted_counts[status.account.id] += 1

    def count_of(self, account: Account) -> int:
        """How many statuses the account has."""
        own = self._by_account.get(account.id, [])
        return len(own) - self._deleted_counts[account.id]

    @property
    def statuses(self) -> list[Status]:
        """Those that are not deleted, oldest first."""
        return [status for status in self.all_statuses if not status.deleted]

    def status(self, number: int | str, viewer: Account | None) -> Status:
        """One status that the viewer may see."""
        found = self._by_id.get(int(number)) if str(number).isdecimal() else None
        if found is None or found.deleted or not _visible(found, viewer):
            raise not_found()
        return found

    def replies(self, status: Status) -> list[Status]:
        return [one for one in self._replies.get(status.id, []) if not one.deleted]

    def medium(self, number: str, account: Account) -> UploadedMedia:
        """A file of the account that no status has yet."""
        found = self.media.get(int(number)) if number.isdecimal() else None
        if found is None or found.account is not account or found.attached:
            raise not_found()
        return found

    def page(
        self, account: Account, viewer: Account | None, form: MastodonForm, *, until: datetime
    ) -> list[Status]:
        """A page of an account's statuses of up to a moment, newest first.

        `since_id` gives the newest ones after it, `min_id` those that follow it at once.
        """
        low = form.number("min_id") or form.number("since_id") or 0
        high = form.number("max_id")
        upwards = bool(form.number("min_id"))
        own = self._by_account.get(account.id, [])
        found = (
            one
            for one in (own if upwards else reversed(own))
            if low < one.id < (high or one.id + 1)
            and one.created_at <= until
            and _wanted(one, form)
            and _visible(one, viewer)
        )
        page = list(islice(found, page_size(form)))
        return page[::-1] if upwards else page

    def attached(self, ids: Sequence[int]) -> list[UploadedMedia]:
        return [self.media[number] for number in ids]


def page_size(form: MastodonForm) -> int:
    limit = form.number("limit")
    return PAGE_SIZE_DEFAULT if limit is None else min(limit, PAGE_SIZE_MAX)


def _wanted(status: Status, form: MastodonForm) -> bool:
    return not (
        status.deleted
        or (form.flag("exclude_reblogs") and status.reblog_of_id)
        or (form.flag("exclude_replies") and status.in_reply_to_id)
        or (form.flag("only_media") and not status.shown.media_ids)
        or form.flag("pinned")
    )


def _visible(status: Status, viewer: Account | None) -> bool:
    return status.visibility in PUBLIC or status.account is viewer
