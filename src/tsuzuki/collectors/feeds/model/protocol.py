"""What a model is asked, what it answers, and how it fails. One `ask` sends at most one request.

    SourceFailed
    ├── ModelBlocked             this item's failure: blocked, cut off, or an answer that is not valid
    ├── ModelUnavailable         transient: no answer, or the server has trouble
    ├── ModelMisconfigured       permanent: key, model name, plan; the job stops, no item is at fault
    └── RateLimitedUntil         too many requests in a short time
        └── ModelOutOfQuota      the allowance of a day is used up

`ModelUnavailable` and `ModelMisconfigured` are the kit's `SourceUnavailable` and `SourceRefused`.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol

from tsuzuki.collectors.feeds.tables import PreparationStep
from tsuzuki.outward.errors import (
    OutOfQuota,
    SourceFailed,
    SourceRefused,
    SourceUnavailable,
)

RAW_CHARACTERS_MAX = 20_000
"""How much of a model's answer is kept as it came."""


class Verdict(StrEnum):
    """What screening says about an article."""

    WORTH = "worth"
    NOT_WORTH = "not_worth"
    NOT_READY = "not_ready"
    """The page says that it will have its text later."""


@dataclass(frozen=True, kw_only=True)
class Question:
    """`title`, `url` and `text` come from the web: they are data, and never part of the instructions."""

    step: PreparationStep
    instructions: str
    text: str
    title: str
    url: str
    language: str
    characters_max: int


@dataclass(frozen=True, kw_only=True)
class Usage:
    """What a request cost. `cost_micros` is in millionths of a US dollar, and None if the price is unknown."""

    input_tokens: int = 0
    output_tokens: int = 0
    """Tokens of thinking included: they are paid like the answer."""

    cost_micros: int | None = None

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


@dataclass(frozen=True, kw_only=True)
class ModelAnswer:
    """A checked answer: a verdict if the step is screening, a text if it is the summary."""

    verdict: Verdict | None
    text: str | None
    why: str | None
    usage: Usage
    raw: str


class BlockCause(StrEnum):
    """Why there is no usable answer for an item."""

    BLOCKED = "blocked"
    """The model, or a filter before or after it, refused the content."""

    CUT_OFF = "cut_off"
    """The answer was longer than `output_tokens_max` allows; thinking counts."""

    INVALID = "invalid"
    """The answer is not what the schema asks for."""

    REQUEST_REFUSED = "request_refused"
    """The server refused this text, though it has answered others: too long, or unreadable."""


class ModelBlocked(SourceFailed):
    """No usable answer for this item. The same question to the same model would end the same way."""

    code = "model_blocked"
    permanent = True

    def __init__(
        self, message: str, *, why: BlockCause, usage: Usage, is_paid: bool, raw: str = ""
    ) -> None:
        super().__init__(message, code=f"model_{why}")
        self.why = why
        self.usage = usage
        self.is_paid = is_paid
        self.raw = raw[:RAW_CHARACTERS_MAX]


class ModelUnavailable(SourceUnavailable):
    """No answer. `maybe_paid`: the request may have reached the model."""

    code = "model_unavailable"

    def __init__(self, message: str, *, maybe_paid: bool, **about: Any) -> None:
        super().__init__(message, **about)
        self.maybe_paid = maybe_paid


class ModelMisconfigured(SourceRefused):
    """No item can be answered until a setting, the key or the plan changes."""

    code = "model_misconfigured"


class ModelOutOfQuota(OutOfQuota):
    """The day's allowance is used up. `probe_at` is when one request may find out whether it still is."""

    def __init__(self, message: str, *, probe_at: datetime, **about: Any) -> None:
        super().__init__(message, **about)
        self.probe_at = probe_at


class LanguageModel(Protocol):
    """Answers questions, from any thread."""

    @property
    def name(self) -> str:
        """Under which feeds know it."""

    @property
    def identity(self) -> str:
        """Provider, model and limits: with another identity the same question may be answered otherwise."""

    def ask(self, question: Question) -> ModelAnswer:
        """Send one request. Raises one of the errors above."""

    def estimated_tokens(self, question: Question) -> int:
        """The most that the request is expected to use, the answer included."""

    def estimated_cost_micros(self, question: Question) -> int | None:
        """The most that it is expected to cost, or None if the price is unknown."""

    def check_access(self) -> str:
        """Ask the server something that costs nothing. Says what was found; raises `SourceFailed`."""

    def close(self) -> None:
        """Close its connections."""
