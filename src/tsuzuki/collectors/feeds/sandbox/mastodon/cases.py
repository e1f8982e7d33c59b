"""What the stand-in for Mastodon does with keys, and what it does on demand."""

from enum import StrEnum


class KeyMode(StrEnum):
    """What a repeated Idempotency-Key does."""

    HONOURED = "honoured"
    """The status made before is answered, for an hour."""

    IGNORED = "ignored"
    """A second status is made, as on servers that know no keys."""

    ERROR_ON_REPEAT = "error_on_repeat"
    """500, although the status made before exists."""


class WriteCase(StrEnum):
    """How one post, or one edit, goes wrong."""

    GATEWAY_TIMEOUT = "gateway_timeout"
    """504, although it is stored."""

    STORED_LATER = "stored_later"
    """504; it is stored after `seconds`, or when `store_pending` is called. Until then its key answers 503, unless
    keys are ignored."""

    REPLY_LOST = "reply_lost"
    """It is stored, and the connection is reset."""

    REQUEST_LOST = "request_lost"
    """The connection is reset, and nothing is stored."""

    SERVER_ERROR = "server_error"
    """500, and nothing is stored."""

    UNAVAILABLE = "unavailable"
    """503, and nothing is stored."""

    TOO_MANY_REQUESTS = "too_many_requests"
    """429 with its reset, and nothing is stored."""

    SLOW = "slow"
    """It is stored at once and answered after `seconds`."""
