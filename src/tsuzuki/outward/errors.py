"""Errors of a source, the same for every collector, which decides by class and never by text:

    SourceFailed                 the source did not give a good answer
    ├── SourceRefused            permanent: a retry gives the same until a setting or the source changes
    ├── SourceUnavailable        transient: no answer, or a broken one; retry after a pause
    │   └── NotConnected         no connection was made, so the request was certainly not sent
    └── RateLimited              it asks for a pause of `retry_after_seconds`
        └── RateLimitedUntil     and says until when
            └── OutOfQuota       because the allowance of a longer time, such as a day, is used up

Their messages never hold a key, a token or an e-mail address.
"""

from datetime import datetime
from typing import Any

from tsuzuki.model.errors import ServiceUnreachable


class SourceFailed(ServiceUnreachable):
    """The source did not give a good answer. What was stored stays as it is. `result` is stored with the run."""

    code = "source"
    result: Any = None


class SourceRefused(SourceFailed):
    """The source will not answer this request. `hint` says what to change."""

    code = "source_refused"
    permanent = True


class SourceUnavailable(SourceFailed):
    """No answer, or a broken one. A retry may help."""

    code = "source_unwell"


class NotConnected(SourceUnavailable):
    """No connection was made: the request was certainly not sent."""


class RateLimited(SourceFailed):
    """Too many requests in a short time with the same key or token."""

    code = "rate_limited"


class RateLimitedUntil(RateLimited):
    """The same, with the moment from which requests are welcome again."""

    def __init__(self, message: str, *, until: datetime, **about: Any) -> None:
        super().__init__(message, **about)
        self.until = until


class OutOfQuota(RateLimitedUntil):
    """The allowance of a longer time, such as a day, is used up."""

    code = "out_of_quota"
