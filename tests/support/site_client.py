"""A bare HTTP client for the feed site: one request, no redirects followed, nothing decoded."""

import http.client
from dataclasses import dataclass
from email.message import Message
from urllib.parse import urlsplit

from tsuzuki.sandbox.server import StandIn


@dataclass(frozen=True)
class Answer:
    status: int
    headers: Message
    body: bytes

    @property
    def lower_headers(self) -> dict[str, str]:
        """Headers with lower-case names, as feedparser expects."""
        return {name.lower(): value for name, value in self.headers.items()}


def get(server: StandIn, path: str, **headers: str) -> Answer:
    """`If_None_Match="..."` sends If-None-Match."""
    return call(server, "GET", path, **headers)


def call(
    server: StandIn, method: str, path: str, body: str | None = None, **headers: str
) -> Answer:
    parts = urlsplit(server.url)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=120)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    try:
        sent_body = None if body is None else body.encode()
        connection.request(method, path, body=sent_body, headers=sent)
        response = connection.getresponse()
        return Answer(response.status, response.headers, response.read())
    finally:
        connection.close()
