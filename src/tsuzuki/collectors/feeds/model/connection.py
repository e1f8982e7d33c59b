"""The connection to a model's server: one request, and what its failure means.

Every error is one of those in `protocol`. Their messages hold no key: what a server says is quoted without it.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tsuzuki.collectors.feeds.model.prices import Price
from tsuzuki.collectors.feeds.model.prompts import message_of
from tsuzuki.collectors.feeds.model.protocol import (
    BlockCause,
    ModelBlocked,
    ModelMisconfigured,
    ModelOutOfQuota,
    ModelUnavailable,
    Question,
    Usage,
)
from tsuzuki.collectors.feeds.model.quota_errors import (
    OUT_OF_CREDIT,
    ErrorBody,
    LimitKind,
    error_body,
    limit_of,
)
from tsuzuki.collectors.feeds.options import ModelSettings
from tsuzuki.model.clock import Clock
from tsuzuki.outward.errors import (
    NotConnected,
    RateLimitedUntil,
    SourceFailed,
    SourceRefused,
    SourceUnavailable,
)
from tsuzuki.outward.http import HttpClient, HttpResponse
from tsuzuki.outward.retry_after import seconds_asked

REQUEST_TOKENS = 100
"""What a server adds to a request: roles, tags, the schema."""

REFUSED_IN_A_ROW_MAX = 3
"""So many requests refused one after the other are not the fault of their texts: a name such as `…-latest` may stand
for another model since."""

_TOO_LONG = re.compile(
    r"token count|context.?(length|window)|too (long|large)|maximum (context|number of tokens)",
    re.IGNORECASE,
)
_PASSING = frozenset({408, 409, 425, 499})
_HINTS = {
    401: "Check `api_key`.",
    403: "Check `api_key`, and that it has access to this model.",
    404: "Check `model` and `base_url`; providers withdraw models from time to time.",
}
_FILTERED = frozenset({"content_filter", "content_policy_violation"})
_KEY_REASONS = frozenset({"API_KEY_INVALID", "invalid_api_key", "FAILED_PRECONDITION"})


class ModelConnection:
    """What the models over HTTP share. `has_answered` says whether this model has answered any request before,
    in this process or another."""

    def __init__(
        self,
        settings: ModelSettings,
        *,
        name: str,
        model: str,
        base_url: str,
        headers: Mapping[str, str],
        price: Price | None,
        clock: Clock,
        has_answered: Callable[[], bool],
    ) -> None:
        self.name = name
        self.output_tokens_max = settings.output_tokens_max
        self._headers = headers
        self._price = price
        self._clock = clock
        self._has_answered = has_answered
        self._answers = 0
        self._refused_in_a_row = 0
        key = settings.api_key.get_secret_value().strip() if settings.api_key else ""
        self._client = HttpClient(
            service=f"The model {name} ({model})",
            base_url=base_url,
            clock=clock,
            secrets=[key] if key else [],
            answer_seconds=settings.timeout,
            silence_seconds=settings.timeout,
        )

    def close(self) -> None:
        self._client.close()

    def get(self, path: str) -> None:
        """Ask for something that is not paid. Raises as `post` does."""
        try:
            response = self._client.get(path, {}, headers=self._headers)
        except SourceUnavailable as problem:
            raise ModelUnavailable(problem.message, maybe_paid=False) from None
        if response.status != 200:
            try:
                answer = response.json()
            except ValueError:
                answer = None
            raise self._failure(response, error_body(answer))

    def post(self, path: str, document: Any) -> Mapping[str, Any]:
        """The JSON object of a good answer to one request. Raises one of the errors in `protocol`."""
        try:
            response = self._client.post_json(path, document, headers=self._headers)
        except NotConnected as problem:
            raise ModelUnavailable(problem.message, maybe_paid=False) from None
        except SourceUnavailable as problem:
            raise ModelUnavailable(problem.message, maybe_paid=True) from None
        except SourceRefused as problem:  # it is larger than any answer can be
            raise self.blocked(problem.message, BlockCause.INVALID, Usage()) from None
        try:
            answer = response.json()
        except ValueError:
            answer = None
        if response.status != 200:
            raise self._failure(response, error_body(answer))
        if not isinstance(answer, Mapping) or "error" in answer:
            raise self.malformed("the answer is not valid JSON")
        self._answers += 1
        self._refused_in_a_row = 0
        return answer

    def malformed(self, what: str) -> ModelUnavailable:
        """An answer with status 200 that is not one of a model: a page of a proxy, for example."""
        return ModelUnavailable(self._client.malformed(what).message, maybe_paid=True)

    def blocked(
        self, message: str, why: BlockCause, usage: Usage, *, raw: str = "", is_paid: bool = True
    ) -> ModelBlocked:
        return ModelBlocked(message, why=why, usage=usage, is_paid=is_paid, raw=raw)

    def filtered(self, reason: str, usage: Usage, *, raw: str = "") -> ModelBlocked:
        """The content was refused, for a reason that the server names."""
        named = self._client.quoted(reason)
        message = f"{self._client.service} refused the content{named}"
        return self.blocked(message, BlockCause.BLOCKED, usage, raw=raw)

    def cut_off(self, usage: Usage, *, raw: str = "") -> ModelBlocked:
        message = (
            f"{self._client.service} cut off its answer at {self.output_tokens_max} tokens; a "
            "larger `output_tokens_max` may help"
        )
        return self.blocked(message, BlockCause.CUT_OFF, usage, raw=raw)

    def usage(self, input_tokens: int, output_tokens: int) -> Usage:
        cost = self._price.cost_micros(input_tokens, output_tokens) if self._price else None
        return Usage(input_tokens=input_tokens, output_tokens=output_tokens, cost_micros=cost)

    def estimated_usage(self, question: Question, raw: str | None = None) -> Usage:
        """The most that a request is expected to use, or about what it used if its answer is known."""
        sent = token_count(question.instructions) + token_count(message_of(question))
        received = self.output_tokens_max if raw is None else token_count(raw)
        return self.usage(sent + REQUEST_TOKENS, received)

    def _failure(self, response: HttpResponse, body: ErrorBody) -> SourceFailed:
        status = response.status
        sentence = f"{self._client.service} answered {status}{self._client.quoted(body.message)}"
        if status in (402, 429):
            return self._limit(response, body, sentence)
        if status >= 500 or status in _PASSING:
            # A server that explains its error did not answer, and charges nothing.
            return ModelUnavailable(
                sentence,
                maybe_paid=not body.is_json,
                retry_after_seconds=self._retry_after(response),
            )
        if status in (400, 413, 422):
            return self._refused(sentence, body)
        return ModelMisconfigured(sentence, hint=_HINTS.get(status, "Check `base_url`."))

    def _limit(self, response: HttpResponse, body: ErrorBody, sentence: str) -> SourceFailed:
        if response.status == 402:
            body = replace(body, codes=body.codes | OUT_OF_CREDIT)
        limit = limit_of(
            body, now=self._clock.now(), retry_after_seconds=self._retry_after(response)
        )
        if limit.kind is LimitKind.NOT_IN_PLAN:
            return ModelMisconfigured(
                sentence,
                hint="The plan of this key does not include the model: choose another one.",
            )
        if limit.kind is LimitKind.DAY:
            return ModelOutOfQuota(sentence, until=limit.until, probe_at=limit.probe_at)
        return RateLimitedUntil(sentence, until=limit.until)

    def _refused(self, sentence: str, body: ErrorBody) -> SourceFailed:
        """A request that is refused as it is: for its text, or for what all requests have in common."""
        if body.codes & _KEY_REASONS or "api key" in body.message.lower():
            return ModelMisconfigured(sentence, hint="Check `api_key` and where it can be used.")
        if body.codes & _FILTERED:
            return self.blocked(sentence, BlockCause.BLOCKED, Usage(), is_paid=False)
        if _TOO_LONG.search(body.message):
            return self.blocked(sentence, BlockCause.REQUEST_REFUSED, Usage(), is_paid=False)
        self._refused_in_a_row += 1
        is_every_text = self._refused_in_a_row >= REFUSED_IN_A_ROW_MAX
        if not is_every_text and (self._answers or self._has_answered()):
            return self.blocked(sentence, BlockCause.REQUEST_REFUSED, Usage(), is_paid=False)
        return ModelMisconfigured(
            sentence,
            hint="The model rejects every request. Check that it supports JSON output with a schema.",
        )

    def _retry_after(self, response: HttpResponse) -> float | None:
        return seconds_asked(response.headers.get("retry-after"), now=self._clock.now())


def token_count(text: str) -> int:
    """About what tokenizers count, rather more: three ASCII characters to a token, any other character alone."""
    ascii_count = len(text.encode("ascii", "ignore"))
    return -(-ascii_count // 3) + len(text) - ascii_count


def number_in(fields: Mapping[str, Any], *names: str) -> int:
    """The sum of these fields, as far as they are whole numbers."""
    values = (fields.get(name) for name in names)
    return sum(value for value in values if type(value) is int and value > 0)
