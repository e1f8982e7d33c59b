"""What the stand-in for Gemini does on demand."""

from enum import StrEnum


class GeminiCase(StrEnum):
    """One way to answer. Those that answer 200 are paid."""

    MINUTE_QUOTA = "minute_quota"
    """429: requests per minute, with RetryInfo. `seconds` is the delay."""

    DAILY_QUOTA = "daily_quota"
    """429: requests per day, and yet with a short RetryInfo."""

    BOTH_QUOTAS = "both_quotas"
    """429: requests per minute and per day, the minute first."""

    QUOTA_WITHOUT_DETAILS = "quota_without_details"
    """429: neither details nor a delay."""

    QUOTA_IN_TEXT = "quota_in_text"
    """429: the delay stands in the message only, in decimal seconds."""

    NOT_IN_PLAN = "not_in_plan"
    """429: `limit: 0`, the plan does not include the model."""

    CUT_OFF = "cut_off"
    """200: finish reason MAX_TOKENS with the first half of the answer."""

    CUT_OFF_EMPTY = "cut_off_empty"
    """200: finish reason MAX_TOKENS without text; thinking used the tokens."""

    SAFETY = "safety"
    """200: finish reason SAFETY without text."""

    RECITATION = "recitation"
    """200: finish reason RECITATION with the first half of the answer."""

    BLOCKED_PROMPT = "blocked_prompt"
    """200: `promptFeedback.blockReason` and no candidate."""

    NO_CANDIDATES = "no_candidates"
    """200: a usage and nothing else."""

    BAD_ENUM = "bad_enum"
    """200: JSON with a value its enum does not list."""

    TEXT_AROUND_JSON = "text_around_json"
    """200: a sentence and a code fence around the JSON."""

    INVALID_ARGUMENT = "invalid_argument"
    """400: the bare sentence, which does not say what is wrong."""

    KEY_SUSPENDED = "key_suspended"
    """403: the key was taken back."""

    SERVER_ERROR = "server_error"
    """500: an internal error."""

    OVERLOADED = "overloaded"
    """503: the model is overloaded."""

    BAD_GATEWAY = "bad_gateway"
    """502: an HTML page."""

    SLOW = "slow"
    """200: paid at once, sent after `seconds`."""

    REPLY_LOST = "reply_lost"
    """200 and paid, but the connection is reset before the answer is sent."""

    REQUEST_LOST = "request_lost"
    """The connection is reset, and nothing was paid."""
