"""A served workspace with users, sessions, tokens and webhooks: an admin `ada`, an operator `bob`, a viewer `cyd`."""

import hashlib
import hmac
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from playwright.sync_api import BrowserContext

from support.page_site import HOSTILE
from support.web_client import SESSION_COOKIE, Client, HttpAnswer, Served, served_application
from tsuzuki.model.access import Principal, Role
from tsuzuki.services.access.sessions import SignInPlace
from tsuzuki.web.pages.route import FORM_TYPE

PASSWORD = "correct-horse-battery"
SECRET = "a-secret-of-the-shop-that-is-long"
ROLES = {"ada": Role.ADMIN, "bob": Role.OPERATOR, "cyd": Role.VIEWER}
FILE = """\
webhooks:
  shop:
    kind: github
    secret: ${SHOP_SECRET}
    event: order.paid
  unset:
    kind: header
    header: X-Proof
    secret: ${NOT_SET_ANYWHERE}
jobs:
  on-order:
    command: ["true"]
    on_event: order.paid
"""


@dataclass(frozen=True, kw_only=True)
class AccessSite:
    served: Served

    @property
    def url(self) -> str:
        return self.served.client.url

    def principal(self, name: str) -> Principal:
        application = self.served.application
        user = application.users.get(name, by=application.principal)
        return Principal(actor=f"user:{name}", role=user.role, user_id=user.id)

    def sign_in(self, name: str, user_agent: str = "Mozilla/5.0 (X11; Linux) Chrome/140") -> str:
        """A session; its secret."""
        place = SignInPlace(address="192.0.2.7", user_agent=user_agent)
        return self.served.application.sessions.sign_in(name, PASSWORD, place=place).secret

    def enter(self, context: BrowserContext, name: str) -> None:
        """Let a browser be signed in."""
        secret = self.sign_in(name)
        context.add_cookies([{"name": SESSION_COOKIE, "value": secret, "url": self.url}])

    def client(self, secret: str) -> "Browser":
        return Browser(self.url, secret)


class Browser:
    """Sends what a browser sends, without one: a cookie, and forms of the same site."""

    def __init__(self, url: str, secret: str) -> None:
        self._client = Client(url, token=None)
        self._cookie = {"Cookie": f"{SESSION_COOKIE}={secret}"}

    def get(self, path: str) -> HttpAnswer:
        return self._client.request("GET", path, headers=self._cookie)

    def post(self, path: str, form: str = "") -> HttpAnswer:
        headers = {**self._cookie, "Content-Type": FORM_TYPE, "Sec-Fetch-Site": "same-origin"}
        return self._client.request("POST", path, headers=headers, raw=form.encode())


@contextmanager
def access_site(folder: Path) -> Iterator[AccessSite]:
    (folder / "tsuzuki.yaml").write_text(FILE, encoding="utf-8")
    with served_application(folder, fixed=False, environ={"SHOP_SECRET": SECRET}) as served:
        application = served.application
        application.jobs.apply()
        for name, role in ROLES.items():
            application.users.add(name, PASSWORD, role=role, by=application.principal)
        site = AccessSite(served=served)
        site.sign_in("bob", HOSTILE)
        application.tokens.create("ci", by=site.principal("bob"), role=Role.OPERATOR)
        _deliver(served)
        yield site


def _deliver(served: Served) -> None:
    body = b'{"order": 7}'
    signature = hmac.digest(SECRET.encode(), body, hashlib.sha256).hex()
    headers = {"x-hub-signature-256": f"sha256={signature}", "x-github-delivery": "d-1"}
    served.application.webhooks.receive("shop", headers=headers, body=body)
