"""What the OpenAI-compatible stand-in does on demand."""

from enum import StrEnum


class CompletionCase(StrEnum):
    """One way to answer. Those that answer 200 are paid."""

    RATE_LIMIT = "rate_limit"
    """429: too many requests per minute, with `Retry-After`. `seconds` is the delay."""

    INSUFFICIENT_QUOTA = "insufficient_quota"
    """429: the money is used up; waiting does not help."""

    CUT_OFF = "cut_off"
    """200: finish reason `length` with the first half of the answer."""

    CUT_OFF_EMPTY = "cut_off_empty"
    """200: finish reason `length` without text; reasoning used the tokens."""

    CONTENT_FILTER = "content_filter"
    """200: finish reason `content_filter` without text."""

    REFUSAL = "refusal"
    """200: a refusal instead of the content."""

    NO_CHOICES = "no_choices"
    """200: a usage and no choice."""

    BAD_ENUM = "bad_enum"
    """200: JSON with a value its enum does not list."""

    TEXT_AROUND_JSON = "text_around_json"
    """200: a sentence and a code fence around the JSON."""

    BAD_REQUEST = "bad_request"
    """400: the server does not support what was asked for."""

    SERVER_ERROR = "server_error"
    """500: an internal error."""

    OVERLOADED = "overloaded"
    """503: the server is overloaded."""

    BAD_GATEWAY = "bad_gateway"
    """502: an HTML page."""

    SLOW = "slow"
    """200: paid at once, sent after `seconds`."""

    REPLY_LOST = "reply_lost"
    """200 and paid, but the connection is reset before the answer is sent."""

    REQUEST_LOST = "request_lost"
    """The connection is reset, and nothing was paid."""
