"""The HTTP client of a GitLab: one request, one reply, within limits of time and size.

python-gitlab carries the token and knows the paths; it never waits and never retries here. Every
failure is raised as a `SourceFailed`. The token goes to the configured server and nowhere else: a
redirect to another one is refused.
"""

import io
import math
import ssl
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl, urljoin, urlsplit

from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import extra_missing
from tsuzuki.outward.errors import (
    RateLimited,
    SourceFailed,
    SourceRefused,
    SourceUnavailable,
)
from tsuzuki.outward.redaction import redacted
from tsuzuki.outward.retry_after import seconds_asked, seconds_until
from tsuzuki.outward.user_agent import user_agent

if TYPE_CHECKING:
    from gitlab import Gitlab
    from requests import Response

BODY_BYTES_MAX = 64 * 1024 * 1024
CHUNK_BYTES = 64 * 1024
PAUSE_SECONDS = 60.0
"""How long to leave a host alone that asks for it without saying how long; its limits are by the minute."""

TOKEN_HINT = "Set commits.gitlab.token to a token that has not expired and has the scope read_api."  # noqa: S105


@dataclass(frozen=True, kw_only=True)
class GitLabReply:
    """What came back: the status, the JSON and the headers, by lower-case name."""

    status: int
    body: Any
    headers: Mapping[str, str]

    @property
    def error_message(self) -> str:
        """What the server says is wrong, if it does."""
        found = self.body.get("message") if isinstance(self.body, dict) else None
        return str(found or "")


@dataclass(frozen=True, kw_only=True)
class GitLabServer:
    """Where a GitLab is and how to be let in."""

    url: str
    token: str | None
    timeout_seconds: float

    @property
    def name(self) -> str:
        return urlsplit(self.url).netloc.rpartition("@")[2] or self.url


class GitLabClient:
    """A connection to one server, kept open; used by one thread at a time."""

    def __init__(self, server: GitLabServer, clock: Clock) -> None:
        self._server = server
        self._clock = clock
        self._client = self._connect()

    def get(
        self, path: str, query: Mapping[str, Any] | None = None, *, accept: Collection[int] = ()
    ) -> GitLabReply:
        """The JSON at `path` below the API's root. A status in `accept` is an answer as well."""
        from gitlab.exceptions import GitlabError  # noqa: PLC0415 - slow; only who needs it pays
        from requests.exceptions import RequestException  # noqa: PLC0415 - slow; only who needs it pays

        try:
            response = self._client.http_request(
                "get", path, query_data=dict(query or {}), obey_rate_limit=False
            )
        except GitlabError as problem:
            return self._rejected(problem, accept)
        except RequestException as problem:
            raise self._unreachable(problem) from None
        return GitLabReply(
            status=response.status_code,
            body=self._json(response),
            headers={name.lower(): value for name, value in response.headers.items()},
        )

    def close(self) -> None:
        self._client.session.close()

    def _connect(self) -> "Gitlab":
        try:
            import gitlab  # noqa: PLC0415 - slow to load, and an extra
            import requests  # noqa: PLC0415 - comes with it
        except ImportError as problem:
            raise extra_missing(
                "GitLab access requires python-gitlab, which is not installed", extra="commits"
            ) from problem
        session = requests.Session()
        session.hooks["response"].append(self._receive)
        return gitlab.Gitlab(
            self._server.url,
            private_token=self._server.token,
            timeout=self._server.timeout_seconds,
            user_agent=user_agent(),
            session=session,
        )

    def _receive(self, response: "Response", *_args: Any, **_options: Any) -> None:
        """Called by requests when the head of an answer is there and its body is still to come."""
        if response.is_redirect and not self._stays_here(response):
            response.close()
            raise self._error(
                SourceRefused,
                "redirects to another server",
                hint="Set gitlab.url to the new address.",
            )
        body = self._read(response)
        if response.status_code == 429:
            seconds = self._pause(response.headers)
            sentence = f"asks for a pause of {math.ceil(seconds)} s"
            raise self._error(RateLimited, sentence, retry_after_seconds=seconds)
        if response.status_code == 503 and "Retry-After" in response.headers:
            seconds = self._pause(response.headers)
            raise self._error(
                SourceUnavailable, "is unavailable (503)", retry_after_seconds=seconds
            )
        response.raw = io.BytesIO(body)

    def _stays_here(self, response: "Response") -> bool:
        target = urlsplit(urljoin(response.url, response.headers["Location"]))
        here = urlsplit(response.url)
        return (target.scheme, target.netloc) == (here.scheme, here.netloc)

    def _read(self, response: "Response") -> bytes:
        from urllib3.exceptions import HTTPError  # noqa: PLC0415 - slow; only who needs it pays

        deadline = self._clock.monotonic() + self._server.timeout_seconds
        parts: list[bytes] = []
        size = 0
        try:
            # read1 returns with what has come, so a server that drips cannot keep us here.
            while part := response.raw.read1(CHUNK_BYTES, decode_content=True):
                parts.append(part)
                size += len(part)
                if size > BODY_BYTES_MAX:
                    raise self._error(SourceUnavailable, f"sent more than {BODY_BYTES_MAX} bytes")
                if self._clock.monotonic() > deadline:
                    raise self._error(SourceUnavailable, "sends its response too slowly")
        except (HTTPError, OSError) as problem:
            response.close()
            raise self._unreachable(problem) from None
        except SourceFailed:
            response.close()
            raise
        return b"".join(parts)

    def _json(self, response: "Response") -> Any:
        kind = response.headers.get("Content-Type", "").partition(";")[0].strip().lower()
        if kind != "application/json":
            what = f"an HTML page ({kind})" if "html" in kind else f"'{kind}'"
            raise self._error(
                SourceUnavailable,
                f"sent {what} instead of data",
                hint="A proxy or sign-in page may be in between.",
            )
        try:
            return response.json()
        except ValueError:
            raise self._error(SourceUnavailable, "sent invalid JSON") from None

    def _rejected(self, problem: Exception, accept: Collection[int]) -> GitLabReply:
        """An answer other than yes: what was to be expected, or the error that says it."""
        status = getattr(problem, "response_code", None) or 0
        error_message = redacted(
            str(getattr(problem, "error_message", "")), secrets=[self._server.token]
        )
        if status in accept:
            return GitLabReply(status=status, body={"message": error_message}, headers={})
        if status == 401:
            what = "does not accept the token" if self._server.token else "requires a token"
            raise self._error(SourceRefused, f"{what} (401)", hint=TOKEN_HINT) from None
        if status == 403:
            raise self._error(
                SourceRefused, f"denied the request (403): {error_message}", hint=TOKEN_HINT
            ) from None
        if status == 404:
            hint = "It may have been deleted, or the token may not have access."
            raise self._error(SourceRefused, f"says: {error_message}", hint=hint) from None
        if 400 <= status < 500 and status != 408:
            raise self._error(
                SourceRefused, f"refused the request ({status}): {error_message}"
            ) from None
        raise self._error(SourceUnavailable, f"failed ({status})") from None

    def _pause(self, headers: Mapping[str, str]) -> float:
        """Until when the host wants to be left alone, in seconds from now."""
        now = self._clock.now()
        asked = seconds_asked(headers.get("Retry-After"), now=now)
        if asked is None:
            asked = seconds_until(headers.get("RateLimit-Reset"), now=now)
        return PAUSE_SECONDS if asked is None else max(asked, 1.0)

    def _unreachable(self, problem: Exception) -> SourceFailed:
        from requests.exceptions import (  # noqa: PLC0415 - slow; only who needs it pays
            InvalidURL,
            MissingSchema,
            Timeout,
        )
        from urllib3.exceptions import TimeoutError as PoolTimeout  # noqa: PLC0415

        if isinstance(problem, Timeout | PoolTimeout | TimeoutError):
            return self._error(
                SourceUnavailable, f"did not respond within {self._server.timeout_seconds:g} s"
            )
        # Any other SSL error may pass: a proxy that restarts breaks off in the handshake.
        if any(isinstance(one, ssl.SSLCertVerificationError) for one in _causes(problem)):
            return self._error(SourceRefused, "has an invalid certificate")
        if isinstance(problem, InvalidURL | MissingSchema):
            return self._error(SourceRefused, "has an invalid address")
        return self._error(SourceUnavailable, f"closed the connection: {_cause(problem)}")

    def _error(
        self,
        kind: type[SourceFailed],
        sentence: str,
        *,
        hint: str | None = None,
        retry_after_seconds: float | None = None,
    ) -> SourceFailed:
        text = redacted(f"GitLab at {self._server.name} {sentence}", secrets=[self._server.token])
        return kind(text, hint=hint, retry_after_seconds=retry_after_seconds)


def _causes(problem: BaseException) -> Iterator[BaseException]:
    """A problem and what it came from, down to the innermost."""
    inner: BaseException | None = problem
    while inner is not None:
        yield inner
        named = next((a for a in inner.args if isinstance(a, Exception)), None)
        inner = inner.__cause__ or inner.__context__ or named


def _cause(problem: BaseException) -> str:
    """The innermost reason, which is the one that tells something."""
    *_, innermost = _causes(problem)
    if isinstance(innermost, OSError) and innermost.strerror:
        return innermost.strerror
    return type(innermost).__name__


def next_query(reply: GitLabReply) -> dict[str, str] | None:
    """The query of the page that follows, out of the Link header; None on the last page."""
    for link in reply.headers.get("link", "").split(","):
        target, _, relation = link.partition(";")
        if 'rel="next"' in relation:
            return dict(parse_qsl(urlsplit(target.strip(" <>")).query))
    return None
