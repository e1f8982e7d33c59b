"""Writing statuses: validation, keys, limits, and the cases in which a client cannot tell what happened."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from tsuzuki.model.clock import Clock
from tsuzuki.sandbox.cases import Cases
from tsuzuki.sandbox.exchange import Response

from . import errors
from .cases import KeyMode, WriteCase
from .entities import MEDIA_ATTACHMENTS_MAX
from .form import MastodonForm
from .records import Account, Status, Version
from .settings import MastodonSettings
from .store import Store
from .text import status_length

VISIBILITIES = ("public", "unlisted", "private", "direct")
LANGUAGE = re.compile(r"[a-z]{2,3}(-[A-Za-z]{2,8})?")
SLOW_SECONDS = 5.0

Write = Callable[[datetime], Response]
"""Stores something, as of a moment."""


@dataclass(frozen=True, kw_only=True)
class _Pending:
    """A write that was answered with 504 and is not stored yet."""

    account: Account
    key: str | None
    write: Write
    due_at: datetime | None
    """None: when it is asked for."""


class StatusPosting:
    """What changes statuses. `answer` renders one as the response to the write itself."""

    def __init__(
        self,
        store: Store,
        settings: MastodonSettings,
        clock: Clock,
        answer: Callable[[Status], Response],
    ) -> None:
        self._store = store
        self._settings = settings
        self._clock = clock
        self._answer = answer
        self._keys: dict[tuple[int, str], tuple[Status, datetime]] = {}
        self._pending: list[_Pending] = []
        self.post_cases = Cases(WriteCase)
        self.edit_cases = Cases(WriteCase)

    @property
    def pending(self) -> int:
        return len(self._pending)

    def store_pending(self) -> None:
        """Store what was answered with 504 and left for later."""
        while self._pending:
            self._pending.pop(0).write(self._clock.now())

    def store_due(self) -> None:
        """Store what was left for later and whose time has come."""
        now = self._clock.now()
        for one in [one for one in self._pending if one.due_at is not None and one.due_at <= now]:
            self._pending.remove(one)
            one.write(one.due_at or now)

    def create(
        self, account: Account, form: MastodonForm, key: str | None, base_url: str
    ) -> Response:
        if key and (repeated := self._repeated(account, key)) is not None:
            return repeated
        status = self._new_status(account, form, key, base_url)

        def write(at: datetime) -> Response:
            status.id = self._store.new_id()
            status.created_at = at
            status.version_times[0] = status.created_at
            self._attach(status.shown)
            self._store.add(status)
            if key:
                expiry = status.created_at + timedelta(seconds=self._settings.key_seconds)
                self._keys[account.id, key] = (status, expiry)
            return self._answer(status)

        return self._carry_out(self.post_cases, write, account, key, status.text)

    def edit(self, account: Account, status: Status, form: MastodonForm) -> Response:
        if status.account is not account:
            raise errors.not_found()
        version = self._version(account, form, language=status.shown.language)

        def write(at: datetime) -> Response:
            if version != status.shown:
                self._attach(version)
                status.versions.append(version)
                status.version_times.append(at)
            return self._answer(status)

        return self._carry_out(self.edit_cases, write, account, None, version.text)

    def reblog(self, account: Account, status: Status) -> Status:
        now = self._clock.now()
        made = Status(
            id=self._store.new_id(),
            account=account,
            visibility=status.visibility,
            created_at=now,
            versions=[status.shown],
            version_times=[now],
            reblog_of_id=status.id,
            base_url=status.base_url,
        )
        self._store.add(made)
        return made

    def _repeated(self, account: Account, key: str) -> Response | None:
        """The answer to a key that was seen before; None if it was not, or means nothing."""
        mode = self._settings.key_mode
        if mode is KeyMode.IGNORED:
            return None
        if any(one.account is account and one.key == key for one in self._pending):
            return errors.try_again()
        status, expiry = self._keys.get((account.id, key), (None, self._clock.now()))
        if status is None or expiry <= self._clock.now():
            return None
        if mode is KeyMode.ERROR_ON_REPEAT:
            return errors.server_error()
        if status.deleted:
            raise errors.not_found()
        return self._answer(status)

    def _carry_out(
        self, cases: Cases[WriteCase], write: Write, account: Account, key: str | None, text: str
    ) -> Response:
        """Write, unless a case has it that the write is lost, and answer as the case has it."""
        planned, now = cases.take(text), self._clock.now()
        if planned is None:
            return write(now)
        match planned.case:
            case WriteCase.STORED_LATER:
                due_at = now + timedelta(seconds=planned.seconds) if planned.seconds else None
                pending = _Pending(account=account, key=key, write=write, due_at=due_at)
                self._pending.append(pending)
                return errors.gateway_timeout()
            case WriteCase.GATEWAY_TIMEOUT:
                write(now)
                return errors.gateway_timeout()
            case WriteCase.REPLY_LOST:
                return replace(write(now), lost=True)
            case WriteCase.SLOW:
                seconds = SLOW_SECONDS if planned.seconds is None else planned.seconds
                return replace(write(now), held_seconds=seconds)
        return NOT_WRITTEN[planned.case]

    def _new_status(
        self, account: Account, form: MastodonForm, key: str | None, base_url: str
    ) -> Status:
        visibility = form.text("visibility") or "public"
        if visibility not in VISIBILITIES:
            raise errors.refused(422, "Record invalid")
        if form.text("scheduled_at"):
            raise errors.refused(422, "The sandbox has no scheduled statuses")
        reply_to = form.number("in_reply_to_id")
        if reply_to is not None:
            self._check_thread(reply_to, account)
        now = self._clock.now()
        return Status(
            id=0,
            account=account,
            visibility=visibility,
            created_at=now,
            versions=[self._version(account, form, language="en")],
            version_times=[now],
            in_reply_to_id=reply_to,
            idempotency_key=key,
            base_url=base_url,
        )

    def _check_thread(self, reply_to: int, account: Account) -> None:
        try:
            self._store.status(reply_to, account)
        except errors.MastodonRefused as problem:
            message = "The post you are trying to reply to does not appear to exist."
            raise errors.refused(404, message) from problem

    def _version(self, account: Account, form: MastodonForm, *, language: str) -> Version:
        """What the form asks for, validated."""
        text, spoiler_text = form.text("status"), form.text("spoiler_text")
        sensitive = form.flag("sensitive") or bool(spoiler_text)
        if not text.strip():
            text, spoiler_text = spoiler_text, ""
        version = Version(
            text=text,
            spoiler_text=spoiler_text,
            sensitive=sensitive,
            language=form.text("language")
            if LANGUAGE.fullmatch(form.text("language"))
            else language,
            media_ids=self._media(account, form.numbers("media_ids")),
        )
        if not text.strip() and not version.media_ids:
            raise errors.invalid("Text can't be blank")
        per_url, limit = self._settings.characters_per_url, self._settings.max_characters
        if status_length(text, spoiler_text, characters_per_url=per_url) > limit:
            raise errors.invalid(f"Text character limit of {limit} exceeded")
        return version

    def _media(self, account: Account, ids: tuple[int, ...]) -> tuple[int, ...]:
        if len(ids) > MEDIA_ATTACHMENTS_MAX:
            raise errors.refused(422, f"Cannot attach more than {MEDIA_ATTACHMENTS_MAX} files")
        for number in ids:
            try:
                media = self._store.medium(str(number), account)
            except errors.MastodonRefused as problem:
                message = f"Media {number} not found or already attached to another post"
                raise errors.refused(422, message) from problem
            if not media.processed:
                raise errors.refused(422, NOT_READY)
        return ids

    def _attach(self, version: Version) -> None:
        for media in self._store.attached(version.media_ids):
            media.attached = True


NOT_READY = "Cannot attach files that have not finished processing. Try again in a moment!"
NOT_WRITTEN = {
    WriteCase.REQUEST_LOST: Response(lost=True),
    WriteCase.SERVER_ERROR: errors.server_error(),
    WriteCase.UNAVAILABLE: errors.try_again(),
    WriteCase.TOO_MANY_REQUESTS: errors.error(429, "Too many requests"),
}
