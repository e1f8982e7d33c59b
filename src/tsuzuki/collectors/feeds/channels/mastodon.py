"""A Mastodon account, through Mastodon.py.

An Idempotency-Key is sent with each post, and not relied upon: servers forget it after an hour, do not know it, or
answer a second use with an error. What arrived is found by its link among the account's own statuses.
"""

import html
import re
import ssl
from collections.abc import Callable, Collection, Iterator
from datetime import datetime, timedelta
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from mastodon import Mastodon, MastodonError
from urllib3.exceptions import ConnectTimeoutError, NewConnectionError

from tsuzuki.collectors.feeds.channels.mastodon_session import MastodonSession, Redirected
from tsuzuki.collectors.feeds.channels.protocol import (
    AccountStopped,
    LookUpFailed,
    LookUpImpossible,
    OutcomeUnknown,
    Outgoing,
    OwnPost,
    PostLimits,
    PostRefused,
    Sent,
)
from tsuzuki.collectors.feeds.tables import PostKind
from tsuzuki.model.clock import Clock
from tsuzuki.outward.errors import (
    NotConnected,
    RateLimitedUntil,
    SourceFailed,
    SourceUnavailable,
)
from tsuzuki.outward.http import checked_base_url
from tsuzuki.outward.redaction import redacted
from tsuzuki.outward.user_agent import user_agent

DEFAULT_LIMITS = PostLimits(characters_max=500, characters_per_url=23)
"""Of a server that does not say."""

PAGE_SIZE = 40
PAGES_MAX = 25
ALL_PAGES_MAX = 1_000
CLOCKS_APART = timedelta(hours=1)
"""The server's clock may be behind ours by so much."""

_HINT_ADDRESS = (
    "Check the account's `base_url`: it must be the server itself, such as https://mastodon.example"
)
_HINT_ACCESS = "Check the account and its `access_token`, which requires the scopes read and write."
_HREF = re.compile(r"""href=["']([^"']*)["']""")
_Answer = TypeVar("_Answer")


class MastodonChannel:
    """One account. For one thread at a time."""

    can_look_up = True
    is_idempotent = False

    def __init__(self, *, base_url: str, access_token: str, clock: Clock, seconds: float) -> None:
        self._token = access_token
        self._session = MastodonSession(clock=clock, seconds=seconds)
        self._client = Mastodon(
            api_base_url=checked_base_url(base_url, service="Mastodon").rstrip("/"),
            access_token=access_token,
            ratelimit_method="throw",
            version_check_mode="none",
            request_timeout=seconds,
            session=self._session,
            user_agent=user_agent(),
        )
        self._account_id: str | None = None

    def read_limits(self) -> PostLimits:
        """By `/api/v2/instance`, or on an older server by `/api/v1/instance`. Raises `SourceFailed`."""
        for ask in (self._client.instance_v2, self._client.instance_v1):
            try:
                return _limits_of(self._ask(ask))
            except PostRefused:
                continue
            except OutcomeUnknown as problem:
                raise SourceUnavailable(problem.message) from None
        return DEFAULT_LIMITS

    def check_access(self) -> str:
        return f"the token belongs to @{self._ask(self._client.account_verify_credentials).acct}"

    def send(self, post: Outgoing) -> Sent:
        body = post.body
        if post.kind is PostKind.EDIT:
            status = self._ask(
                lambda: self._client.status_update(
                    body.target_id,
                    body.text,
                    spoiler_text=body.content_warning,
                    sensitive=body.sensitive,
                )
            )
        else:
            status = self._ask(
                lambda: self._client.status_post(
                    body.text,
                    in_reply_to_id=body.target_id,
                    visibility=body.visibility,
                    language=body.language,
                    sensitive=body.sensitive,
                    spoiler_text=body.content_warning,
                    idempotency_key=post.key,
                ),
                is_new=post.kind is PostKind.POST,
            )
        return _sent(status)

    def look_up(self, post: Outgoing, *, others: Collection[str]) -> Sent | None:
        try:
            if post.kind is PostKind.EDIT:
                return self._look_up_edit(post)
            statuses = self._own_statuses(since=post.created_at - CLOCKS_APART, pages_max=PAGES_MAX)
            return next((_sent(one) for one in statuses if _is_it(one, post, others)), None)
        except LookUpImpossible:
            raise
        except SourceUnavailable as problem:
            raise LookUpFailed(problem.message) from None

    def own_posts(self, *, since: datetime) -> Iterator[OwnPost]:
        for status in self._own_statuses(since=since - CLOCKS_APART, pages_max=ALL_PAGES_MAX):
            links = () if status.in_reply_to_id is not None else tuple(_links_of(status))
            yield OwnPost(remote_id=str(status.id), links=links)

    def close(self) -> None:
        self._session.close()

    def _look_up_edit(self, post: Outgoing) -> Sent | None:
        target = post.body.target_id or ""
        try:
            source = self._ask(lambda: self._client.status_source(target))
        except PostRefused:
            return None
        is_there = source.text.split() == post.body.text.split()
        return Sent(remote_id=target) if is_there else None

    def _own_statuses(self, *, since: datetime, pages_max: int) -> Iterator[Any]:
        """The account's statuses, newest first, back to `since`. Raises `LookUpImpossible` if they are more pages."""
        if self._account_id is None:
            self._account_id = str(self._ask(self._client.account_verify_credentials).id)
        before: Any = None
        for _ in range(pages_max):
            page = self._ask(lambda: self._page(self._account_id, before))  # noqa: B023 - called at once
            yield from (status for status in page if status.created_at >= since)
            if not page or min(status.created_at for status in page) < since:
                return
            before = page[-1].id
        raise LookUpImpossible(f"the account has more than {pages_max * PAGE_SIZE} newer posts")

    def _page(self, account_id: Any, before: Any) -> Any:
        return self._client.account_statuses(
            account_id, exclude_reblogs=True, limit=PAGE_SIZE, max_id=before
        )

    def _ask(self, call: Callable[[], _Answer], *, is_new: bool = False) -> _Answer:
        try:
            return call()
        except MastodonError as problem:
            # Not chained: the library's exceptions may carry what was sent.
            raise self._failure(problem, is_new=is_new) from None

    def _failure(self, problem: MastodonError, *, is_new: bool) -> SourceFailed:
        said = redacted(" ".join(map(str, problem.args[-1:])), secrets=[self._token])
        status = self._session.status
        if status is None:
            return _no_answer(problem, said)
        sentence = f"Mastodon answered {status}: {said}"
        if is_new and status in (404, 405, 410):
            return AccountStopped(sentence, hint=_HINT_ADDRESS)
        match status:
            case 401 | 403:
                return AccountStopped(sentence, hint=_HINT_ACCESS)
            case 429:
                return RateLimitedUntil(sentence, until=self._session.limited_until())
            case _ if 400 <= status < 500 and status not in (408, 425):
                return PostRefused(sentence)
            case _:
                return OutcomeUnknown(sentence)


def _no_answer(problem: MastodonError, said: str) -> SourceFailed:
    """A redirect, a bad certificate and a connection that was never made say for sure that nothing was taken."""
    if isinstance(problem.__context__, Redirected):
        return AccountStopped("Mastodon redirects to another server", hint=_HINT_ADDRESS)
    # Other errors of TLS may be those of a moment, or come after the post was sent.
    if _is_caused_by(problem, ssl.SSLCertVerificationError):
        return AccountStopped(f"Mastodon's certificate is invalid: {said}", hint=_HINT_ADDRESS)
    sentence = f"Mastodon did not respond: {said}"
    if _is_caused_by(problem, NewConnectionError, ConnectTimeoutError):
        return NotConnected(sentence)
    return OutcomeUnknown(sentence)


def _is_caused_by(problem: BaseException, *kinds: type[Exception]) -> bool:
    found: BaseException | None = problem
    while found is not None and not isinstance(found, kinds):
        # requests and urllib3 name what they wrap as an argument, or only by the chain.
        wrapped = next((one for one in found.args if isinstance(one, BaseException)), None)
        found = wrapped or found.__cause__ or found.__context__
    return found is not None


def link_key(url: str) -> str:
    """A link without what servers change in it: scheme, `www`, percent-encoding, the last slash."""
    parts = urlsplit(url.strip())
    host = (parts.hostname or "").removeprefix("www.")
    query = f"?{parts.query}" if parts.query else ""
    # A page may hold several articles, each with a place of its own.
    place = f"#{parts.fragment}" if parts.fragment else ""
    return unquote(f"{host}{parts.path.rstrip('/')}{query}{place}")


def _is_it(status: Any, post: Outgoing, others: Collection[str]) -> bool:
    """Whether a status is this post: it has its link, and belongs to what it belongs to."""
    reply_to = status.in_reply_to_id
    if (None if reply_to is None else str(reply_to)) != post.body.target_id:
        return False
    if str(status.id) in others or status.reblog is not None:
        return False
    wanted = {link_key(post.body.url), link_key(post.body.canonical_url)}
    return not wanted.isdisjoint(map(link_key, _links_of(status)))


def _links_of(status: Any) -> list[str]:
    links = [html.unescape(href) for href in _HREF.findall(status.content or "")]
    card = status.card
    if card is not None and card.url:
        links.append(card.url)
    return links


def _sent(status: Any) -> Sent:
    if not getattr(status, "id", None):
        raise OutcomeUnknown("Mastodon's response is not a status")
    return Sent(remote_id=str(status.id), remote_url=status.url)


def _limits_of(instance: Any) -> PostLimits:
    """What an instance says about statuses; where it says nothing, what is usual."""
    statuses = (instance.get("configuration") or {}).get("statuses") or {}
    characters = statuses.get("max_characters") or instance.get("max_toot_chars")
    per_url = statuses.get("characters_reserved_per_url")
    return PostLimits(
        characters_max=_positive(characters, DEFAULT_LIMITS.characters_max),
        characters_per_url=_positive(per_url, DEFAULT_LIMITS.characters_per_url),
    )


def _positive(said: Any, otherwise: int | None) -> int | None:
    return said if isinstance(said, int) and said > 0 else otherwise
