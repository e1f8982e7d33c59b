"""Safe downloads: GET of an address that a stranger may have written, within limits of place, time and size.

Only http and https, only public addresses (`checked_network`), also after a redirect. One deadline for the whole
exchange with its redirects. A body is cut off at its limit as it comes and as it is decompressed. Proxies, netrc and
cookies are not used: a proxy would resolve the name itself, and nothing could be checked.

Every failure is raised as one of `outward.errors`. Messages name the host and nothing else of a URL, and no exception
of the library is chained to ours.
"""

import ssl
import threading
from collections.abc import Collection, Mapping
from types import MappingProxyType
from typing import Self

import httpcore2
import httpx2

from tsuzuki.model.clock import Clock
from tsuzuki.outward.checked_network import (
    AddressRefused,
    CheckedNetwork,
    Resolve,
    system_resolve,
)
from tsuzuki.outward.content_encoding import ACCEPTED, NotDecodable
from tsuzuki.outward.deadline import DeadlineNetwork, ExchangeDeadline
from tsuzuki.outward.downloaded import (
    Downloaded,
    HttpAnswer,
    TooLarge,
    downloaded,
    read_answer,
)
from tsuzuki.outward.errors import SourceFailed, SourceRefused, SourceUnavailable
from tsuzuki.outward.http import CONNECT_SECONDS, silence_library_log, trusted_certificates
from tsuzuki.outward.user_agent import user_agent
from tsuzuki.outward.web_url import (
    checked_url,
    is_downgrade,
    keeps_secrets,
    redirect_target,
)

__all__ = ["AddressRefused", "Downloaded", "SafeDownloader", "TooLarge"]

REDIRECTS_MAX = 5
KEEPALIVE_CONNECTIONS_MAX = 64
KEEPALIVE_SECONDS = 15.0
PERMANENT_REDIRECTS = frozenset({301, 308})
_SECRET_NAMES = frozenset({"authorization", "cookie", "proxy-authorization"})
_OWN_NAMES = frozenset({"host", "accept-encoding", "connection", "transfer-encoding", "te"})
_NONE: Mapping[str, str] = MappingProxyType({})


class SafeDownloader:
    """Downloads, from any thread. `close` it when no download is under way, or use it in a `with`."""

    def __init__(
        self,
        *,
        clock: Clock,
        timeout_seconds: float,
        private_hosts: Collection[str] = (),
        resolve: Resolve = system_resolve,
        network: httpcore2.NetworkBackend | None = None,
        certificates: ssl.SSLContext | None = None,
    ) -> None:
        silence_library_log()
        self.clock = clock
        self._deadline = ExchangeDeadline(clock)
        self._timeout_seconds = timeout_seconds
        self._certificates = certificates
        silence = min(30.0, timeout_seconds)
        connect = min(CONNECT_SECONDS, timeout_seconds)
        self._extensions = {"timeout": {"connect": connect, "read": silence, "write": silence}}
        self._network = CheckedNetwork(
            DeadlineNetwork(network or httpcore2.SyncBackend(), self._deadline),
            deadline=self._deadline,
            private_hosts=private_hosts,
            resolve=resolve,
        )
        self._pools: dict[str, httpcore2.ConnectionPool] = {}
        self._lock = threading.Lock()

    def get(
        self,
        url: str,
        *,
        bytes_max: int,
        headers: Mapping[str, str] = _NONE,
        accept: str = "*/*",
        sensitive_headers: Mapping[str, str] = _NONE,
    ) -> Downloaded:
        """The response at the end of the redirects, with any status. Of an error's body only the start is kept.

        `sensitive_headers`, `Authorization` and `Cookie` go to the origin of `url` only.
        """
        open_headers = {"user-agent": user_agent(), "accept": accept, **_lower_case(headers)}
        secrets = _lower_case(sensitive_headers)
        secrets |= {name: open_headers.pop(name) for name in _SECRET_NAMES & set(open_headers)}
        with self._deadline.within(self._timeout_seconds):
            return self._follow(checked_url(url), open_headers, secrets, bytes_max)

    def close(self) -> None:
        with self._lock:
            pools, self._pools = list(self._pools.values()), {}
        for pool in pools:
            pool.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def _follow(
        self, url: httpx2.URL, headers: dict[str, str], secrets: dict[str, str], bytes_max: int
    ) -> Downloaded:
        start, moved, is_permanent = url, None, True
        for _ in range(REDIRECTS_MAX + 1):
            answer = self._exchange(url, headers | secrets, bytes_max)
            target = redirect_target(url, answer.status, answer.headers)
            if target is None:
                return downloaded(answer, final_url=str(url), moved_permanently_to=moved)
            if is_downgrade(url, target):
                raise SourceRefused(
                    f"{url.host} redirects from https to http; such redirects are not followed",
                    code="redirect_downgrade",
                )
            if not keeps_secrets(url, target):
                secrets = {}
            is_permanent = is_permanent and answer.status in PERMANENT_REDIRECTS
            moved = str(target) if is_permanent else moved
            url = target
        raise SourceRefused(
            f"{start.host} redirects more than {REDIRECTS_MAX} times", code="redirects"
        )

    def _exchange(self, url: httpx2.URL, headers: Mapping[str, str], bytes_max: int) -> HttpAnswer:
        """One request and its response."""
        try:
            response = self._pool(url.scheme).handle_request(self._request(url, headers))
            try:
                return read_answer(response, host=url.host, bytes_max=bytes_max)
            finally:
                response.close()
        except (
            httpcore2.TimeoutException,
            httpcore2.NetworkError,
            httpcore2.ProtocolError,
            NotDecodable,
        ) as problem:
            # Not chained: the library's exceptions may repeat a header.
            raise self._failure(url.host, problem) from None

    def _request(self, url: httpx2.URL, headers: Mapping[str, str]) -> httpcore2.Request:
        try:
            sent = [
                (name.encode("ascii"), value.encode("latin-1"))
                for name, value in headers.items()
                if name not in _OWN_NAMES
            ]
        except UnicodeEncodeError:
            raise _bad_header() from None
        own = [(b"host", url.netloc), (b"accept-encoding", ACCEPTED.encode())]
        target = httpcore2.URL(
            scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
        )
        return httpcore2.Request("GET", target, headers=own + sent, extensions=self._extensions)

    def _pool(self, scheme: str) -> httpcore2.ConnectionPool:
        """The connections of a scheme. The trusted certificates are read when the first https URL comes."""
        with self._lock:
            if scheme not in self._pools:
                is_encrypted = scheme == "https"
                self._pools[scheme] = httpcore2.ConnectionPool(
                    ssl_context=(self._certificates or trusted_certificates())
                    if is_encrypted
                    else None,
                    max_connections=None,
                    max_keepalive_connections=KEEPALIVE_CONNECTIONS_MAX,
                    keepalive_expiry=KEEPALIVE_SECONDS,
                    network_backend=self._network,
                )
            return self._pools[scheme]

    def _failure(self, host: str, problem: Exception) -> SourceFailed:
        cause = problem.__cause__ or problem.__context__
        match problem:
            case httpcore2.TimeoutException():
                return SourceUnavailable(
                    f"{host} did not respond in time ({self._timeout_seconds:g} s for the whole "
                    "response)"
                )
            case httpcore2.LocalProtocolError():
                return _bad_header()
            case NotDecodable():
                return SourceUnavailable(f"cannot read the response of {host}: {problem}")
            case _ if isinstance(cause, ssl.SSLCertVerificationError):
                return SourceRefused(
                    f"the certificate of {host} is invalid: {cause.verify_message}",
                    code="certificate",
                )
            case httpcore2.ProtocolError():
                return SourceUnavailable(f"{host} sent an invalid HTTP response")
            case _:
                why = cause.strerror if isinstance(cause, OSError) and cause.strerror else None
                return SourceUnavailable(f"{host} is unreachable: {why or 'no connection'}")


def _lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _bad_header() -> SourceRefused:
    return SourceRefused(
        "a request header contains characters that HTTP does not allow",
        hint="Check the headers and cookies in `requests` for line breaks and non-Latin letters.",
        code="request_header",
    )
