"""The application: tokens, limits and routes."""

import threading
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from typing import Any
from urllib.parse import urlencode

from tsuzuki.model.clock import Clock
from tsuzuki.sandbox.cases import case_routes
from tsuzuki.sandbox.exchange import (
    Application,
    Response,
    Route,
    Router,
    StandInRequest,
    json_response,
)

from . import entities, errors
from .control import settings_routes
from .errors import MastodonRefused
from .form import form_of
from .media import MediaRoutes
from .posting import StatusPosting
from .records import Account, Status
from .settings import MastodonSettings
from .store import Store, page_size
from .throttle import POSTS_PERIOD_SECONDS, REQUESTS_PERIOD_SECONDS, ThrottleWindow

ForAccount = Callable[[StandInRequest, Account], Response]
ForViewer = Callable[[StandInRequest, Account | None], Response]
INVALID_TOKEN = "The access token is invalid"  # noqa: S105 -- an error message
PASSED_ON = ("limit", "exclude_reblogs", "exclude_replies", "only_media")


class Mastodon:
    """The application of a `StandIn`. `statuses` is what is posted and not deleted, oldest first."""

    def __init__(
        self, *, token: str, clock: Clock, settings: MastodonSettings | None = None
    ) -> None:
        self.settings = settings or MastodonSettings()
        self._clock = clock
        self.store = Store(clock)
        self.account = self.store.add_account("sandbox", token)
        self.posting = StatusPosting(self.store, self.settings, clock, self._written)
        self.post_cases, self.edit_cases = self.posting.post_cases, self.posting.edit_cases
        self._requests = ThrottleWindow(clock, REQUESTS_PERIOD_SECONDS)
        self._posts = ThrottleWindow(clock, POSTS_PERIOD_SECONDS)
        self._lock = threading.RLock()
        self.control_routes = [
            *case_routes(self.post_cases),
            *case_routes(self.edit_cases, "/edit_cases"),
            *settings_routes(self),
        ]
        self._router = Router(self._routes(), otherwise=_no_route)

    @property
    def statuses(self) -> list[Status]:
        with self._lock:
            self.posting.store_due()
            return self.store.statuses

    def store_pending(self) -> None:
        """Store what was answered with 504 and left for later."""
        with self._lock:
            self.posting.store_pending()

    def __call__(self, request: StandInRequest) -> Response:
        request = replace(request, path=request.path.rstrip("/"))  # Rails knows both spellings
        with self._lock:
            self._requests.limit = self.settings.requests_max
            self._posts.limit = self.settings.posts_max
            self.posting.store_due()
            account = self._account(request)
            number = account.id if account else 0
            try:
                self._let_in(number)
                response = self._router(request)
            except MastodonRefused as refused:
                response = refused.response
            return replace(response, headers={**response.headers, **self._limits(request, number)})

    def _routes(self) -> list[Route]:
        statuses, user, public = "/api/v1/statuses", self._user, self._public
        media = MediaRoutes(self.store, self.settings)
        return [
            Route("POST", statuses, user(self._create, write=True)),
            Route("GET", f"{statuses}/{{id}}", public(self._show)),
            Route("PUT", f"{statuses}/{{id}}", user(self._edit, write=True)),
            Route("DELETE", f"{statuses}/{{id}}", user(self._delete, write=True)),
            Route("GET", f"{statuses}/{{id}}/context", public(self._context)),
            Route("GET", f"{statuses}/{{id}}/history", public(self._history)),
            Route("GET", f"{statuses}/{{id}}/source", user(self._source)),
            Route("POST", f"{statuses}/{{id}}/reblog", user(self._reblog, write=True)),
            Route("GET", "/api/v1/accounts/verify_credentials", user(self._credentials)),
            Route("GET", "/api/v1/accounts/{id}", public(self._account_entity)),
            Route("GET", "/api/v1/accounts/{id}/statuses", public(self._list)),
            Route("POST", "/api/v2/media", user(media.create, write=True)),
            Route("GET", "/api/v1/media/{id}", user(media.show, write=True)),
            Route("PUT", "/api/v1/media/{id}", user(media.update, write=True)),
            Route("GET", "/api/v1/instance", self._instance_v1),
            Route("GET", "/api/v2/instance", self._instance_v2),
        ]

    def _account(self, request: StandInRequest) -> Account | None:
        kind, _, token = (request.headers.get("Authorization") or "").partition(" ")
        return self.store.account_with_token(token) if kind.lower() == "bearer" else None

    def _let_in(self, account_id: int) -> None:
        if self._requests.remaining(account_id) == 0:
            raise errors.refused(429, "Too many requests")
        self._requests.count(account_id)

    def _limits(self, request: StandInRequest, account_id: int) -> dict[str, str]:
        """The headers of the limit that is nearer; posts count where statuses are written."""
        window = self._requests
        writes = request.method in ("POST", "PUT") and request.path.startswith("/api/v1/statuses")
        if writes and self._posts.remaining(account_id) <= window.remaining(account_id):
            window = self._posts
        return window.headers(account_id, epoch=self.settings.reset_as_epoch)

    def _public(self, action: ForViewer) -> Application:
        """A route that needs no token. One that is unknown is taken for none, as on the real server."""

        def application(request: StandInRequest) -> Response:
            account = self._account(request)
            if account is not None:
                _check(account)
            return action(request, account)

        return application

    def _user(self, action: ForAccount, *, write: bool = False) -> Application:
        def application(request: StandInRequest) -> Response:
            account = self._account(request)
            if account is None:
                raise errors.refused(401, INVALID_TOKEN)
            _check(account)
            if write and not account.token_can_write:
                raise errors.refused(403, "This action is outside the authorized scopes")
            return action(request, account)

        return application

    def _create(self, request: StandInRequest, account: Account) -> Response:
        if self._posts.remaining(account.id) == 0:
            raise errors.refused(429, "Too many requests")
        before = len(self.store.all_statuses)
        key = request.headers.get("Idempotency-Key")
        response = self.posting.create(account, form_of(request), key, request.base_url)
        if len(self.store.all_statuses) > before:
            self._posts.count(account.id)
        return response

    def _edit(self, request: StandInRequest, account: Account) -> Response:
        status = self.store.status(request.params["id"], account)
        return self.posting.edit(account, status, form_of(request))

    def _delete(self, request: StandInRequest, account: Account) -> Response:
        status = self.store.status(request.params["id"], account)
        if status.account is not account:
            raise errors.not_found()
        entity = {**self.entity(status), "text": status.text}
        self.store.delete(status)
        return json_response(entity)

    def _reblog(self, request: StandInRequest, account: Account) -> Response:
        status = self.store.status(request.params["id"], account)
        return json_response(self.entity(self.posting.reblog(account, status)))

    def _show(self, request: StandInRequest, viewer: Account | None) -> Response:
        return json_response(self.entity(self.store.status(request.params["id"], viewer)))

    def _context(self, request: StandInRequest, viewer: Account | None) -> Response:
        status = self.store.status(request.params["id"], viewer)
        ancestors: list[Status] = []
        above = status.in_reply_to_id
        while above:
            ancestors.insert(0, self.store.status(above, viewer))
            above = ancestors[0].in_reply_to_id
        descendants = [self.entity(one) for one in self.store.replies(status)]
        above_it = [self.entity(one) for one in ancestors]
        return json_response({"ancestors": above_it, "descendants": descendants})

    def _history(self, request: StandInRequest, viewer: Account | None) -> Response:
        status = self.store.status(request.params["id"], viewer)
        account = self._entity_of(status.account, status.base_url)
        versions = [
            {**entities.version_entity(status, version, number), "account": account}
            for number, version in enumerate(status.versions)
        ]
        return json_response(versions)

    def _source(self, request: StandInRequest, account: Account) -> Response:
        status = self.store.status(request.params["id"], account)
        source = {"text": status.text, "spoiler_text": status.shown.spoiler_text}
        return json_response({"id": str(status.id), **source})

    def _credentials(self, request: StandInRequest, account: Account) -> Response:
        return json_response(entities.credentials(self._entity_of(account, request.base_url)))

    def _account_entity(self, request: StandInRequest, _viewer: Account | None) -> Response:
        account = self.store.account(request.params["id"])
        return json_response(self._entity_of(account, request.base_url))

    def _list(self, request: StandInRequest, viewer: Account | None) -> Response:
        account = self.store.account(request.params["id"])
        form = form_of(request)
        until = self._clock.now() - timedelta(seconds=self.settings.list_lag_seconds)
        page = [] if account.suspended else self.store.page(account, viewer, form, until=until)
        passed_on = {name: form.text(name) for name in PASSED_ON if form.text(name)}
        links = []
        if page and len(page) == page_size(form):
            links.append(_link(request, {**passed_on, "max_id": str(page[-1].id)}, "next"))
        if page:
            links.append(_link(request, {**passed_on, "min_id": str(page[0].id)}, "prev"))
        headers = {"Link": ", ".join(links)} if links else {}
        return json_response([self.entity(one) for one in page], headers=headers)

    def _instance_v1(self, request: StandInRequest) -> Response:
        host, count = _host(request), len(self.store.statuses)
        return json_response(entities.instance_v1(host, self._configuration(), count))

    def _instance_v2(self, request: StandInRequest) -> Response:
        return json_response(entities.instance_v2(_host(request), self._configuration()))

    def _configuration(self) -> dict[str, Any]:
        return entities.configuration(
            max_characters=self.settings.max_characters,
            characters_per_url=self.settings.characters_per_url,
            description_limit=self.settings.description_limit,
            image_size_limit=self.settings.image_size_limit,
        )

    def _written(self, status: Status) -> Response:
        return json_response(self.entity(status, card=False))

    def entity(self, status: Status, *, card: bool = True) -> dict[str, Any]:
        """The JSON of a status."""
        original = status.reblog_of_id
        reblog = self.entity(self.store.status(original, status.account)) if original else None
        return entities.status_entity(
            status,
            account=self._entity_of(status.account, status.base_url),
            media=self.store.attached(status.shown.media_ids),
            reblog=reblog,
            replies=len(self.store.replies(status)),
            card=card and self.settings.cards,
        )

    def _entity_of(self, account: Account, base_url: str) -> dict[str, Any]:
        return entities.account_entity(account, self.store.count_of(account), base_url)


def _check(account: Account) -> None:
    if account.token_revoked:
        raise errors.refused(401, "The access token was revoked")
    if account.suspended:
        raise errors.refused(403, "Your login is currently disabled")


def _host(request: StandInRequest) -> str:
    return request.base_url.partition("://")[2]


def _link(request: StandInRequest, query: dict[str, str], relation: str) -> str:
    return f'<{request.base_url}{request.path}?{urlencode(query)}>; rel="{relation}"'


def _no_route(_request: StandInRequest) -> Response:
    return errors.error(404, "Not Found")
