"""The application: keys, models, prompts, and the count of what is paid."""

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tsuzuki.collectors.feeds.sandbox.language_model.answers import (
    Prompt,
    Schema,
    answer,
    answer_with_bad_enum,
    first_tokens,
    text_around,
    token_count,
)
from tsuzuki.collectors.feeds.sandbox.language_model.documents import (
    UnreadableDocument,
    document_text,
)
from tsuzuki.collectors.feeds.sandbox.language_model.payments import (
    Payment,
    Payments,
    payment_routes,
)
from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.sandbox.cases import Cases, PlannedCase, case_routes
from tsuzuki.sandbox.exchange import Response, Route, Router, StandInRequest, json_response

from . import errors
from .cases import CompletionCase

KEY = "sandbox-key"
MODELS = ("sandbox-model", "gpt-4o-mini")
SLOW_SECONDS = 5.0
REFUSAL = "I'm sorry, I can't help with that."
ANY_OBJECT: Schema = {"type": "object", "properties": {"summary": {"type": "string"}}}
"""What is filled where JSON is asked for without a schema."""


@dataclass(frozen=True, kw_only=True)
class _Choice:
    """The one choice of an answer; `text` is None where there is no content."""

    text: str | None
    finish_reason: str
    refusal: str | None = None

    def as_dict(self) -> dict[str, Any]:
        message = {"role": "assistant", "content": self.text, "refusal": self.refusal}
        return {
            "index": 0,
            "message": message,
            "logprobs": None,
            "finish_reason": self.finish_reason,
        }


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What the body of a request asks for."""

    model: str
    prompt: Prompt
    schema: Schema | None
    output_tokens_max: int | None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "_Asked":
        messages = body.get("messages") or []
        if not messages:
            raise ValueError("Missing required parameter: 'messages'.")
        if body.get("stream"):
            raise ValueError("The sandbox sends no streams: leave out 'stream'.")
        said = {"user": "", "system": "", "developer": "", "assistant": "", "tool": ""}
        for message in messages:
            said[message["role"]] += _text(message.get("content")) + "\n"
        limit = body.get("max_completion_tokens") or body.get("max_tokens")
        return cls(
            model=str(body.get("model", "")),
            prompt=Prompt(
                instructions=(said["system"] + said["developer"]).strip(),
                text=said["user"].strip(),
            ),
            schema=_schema(body.get("response_format") or {}),
            output_tokens_max=limit,
        )


@dataclass
class OpenAICompatible:
    """The application of a `StandIn`. Its fields may be set anew while it serves."""

    key: str | None = KEY
    """None accepts any key, and none, as servers at home do."""

    models: Sequence[str] = MODELS
    reasoning_tokens: int = 0
    """How many tokens each answer spends on reasoning."""

    clock: Clock = field(default_factory=SystemClock)
    cases: Cases[CompletionCase] = field(default_factory=lambda: Cases(CompletionCase))
    paid: Payments = field(default_factory=Payments)

    def __post_init__(self) -> None:
        self.control_routes = [*case_routes(self.cases), *payment_routes(self.paid)]
        routes = [
            Route("GET", "/v1/models", self._list),
            Route("GET", "/v1/models/{model}", self._get),
            Route("POST", "/v1/chat/completions", self._complete),
        ]
        self._router = Router(routes, otherwise=_not_found)

    def __call__(self, request: StandInRequest) -> Response:
        kind, _, key = (request.headers.get("Authorization") or "").partition(" ")
        if self.key is not None and (kind.lower() != "bearer" or not key):
            return errors.missing_key()
        return errors.wrong_key() if self.key not in (None, key) else self._router(request)

    def _list(self, _request: StandInRequest) -> Response:
        return json_response({"object": "list", "data": [_model(name) for name in self.models]})

    def _get(self, request: StandInRequest) -> Response:
        model = request.params["model"]
        known = model in self.models
        return json_response(_model(model)) if known else errors.unknown_model(model)

    def _complete(self, request: StandInRequest) -> Response:
        try:
            asked = _Asked.of(request.json())
        except UnreadableDocument:
            return errors.invalid_request("Invalid file data.")
        except (ValueError, TypeError, AttributeError, KeyError) as problem:
            return errors.invalid_request(f"The request cannot be read: {problem}")
        if asked.model not in self.models:
            return errors.unknown_model(asked.model)
        planned = self.cases.take(asked.prompt.whole)
        refused = errors.of_case(planned.case, asked.model, planned.seconds) if planned else None
        return refused or self._answer(asked, planned)

    def _answer(self, asked: _Asked, planned: PlannedCase[CompletionCase] | None) -> Response:
        case = planned.case if planned else None
        choice = self._choice(asked, case)
        payment = Payment(
            model=asked.model,
            case=case.value if case else "",
            text=asked.prompt.whole,
            prompt_tokens=token_count(asked.prompt.whole),
            output_tokens=token_count(choice.text or choice.refusal or ""),
            thoughts_tokens=self.reasoning_tokens,
        )
        self.paid.add(payment)
        sent = json_response(
            {
                "id": f"chatcmpl-sandbox-{self.paid.count()}",
                "object": "chat.completion",
                "created": int(self.clock.now().timestamp()),
                "model": asked.model,
                "choices": [] if case is CompletionCase.NO_CHOICES else [choice.as_dict()],
                "usage": _usage(payment),
            }
        )
        held = SLOW_SECONDS if planned is None or planned.seconds is None else planned.seconds
        return Response(
            body=sent.body,
            held_seconds=held if case is CompletionCase.SLOW else 0.0,
            lost=case is CompletionCase.REPLY_LOST,
        )

    def _choice(self, asked: _Asked, case: CompletionCase | None) -> _Choice:
        wrong = case is CompletionCase.BAD_ENUM
        text = (answer_with_bad_enum if wrong else answer)(asked.prompt, asked.schema)
        choices = {
            CompletionCase.CUT_OFF: _Choice(text=text[: len(text) // 2], finish_reason="length"),
            CompletionCase.CUT_OFF_EMPTY: _Choice(text="", finish_reason="length"),
            CompletionCase.CONTENT_FILTER: _Choice(text=None, finish_reason="content_filter"),
            CompletionCase.REFUSAL: _Choice(text=None, finish_reason="stop", refusal=REFUSAL),
            CompletionCase.TEXT_AROUND_JSON: _Choice(text=text_around(text), finish_reason="stop"),
        }
        if case in choices:
            return choices[case]
        if asked.output_tokens_max is not None:
            left = max(asked.output_tokens_max - self.reasoning_tokens, 0)
            if token_count(text) > left:
                return _Choice(text=first_tokens(text, left), finish_reason="length")
        return _Choice(text=text, finish_reason="stop")


def _text(content: Any) -> str:
    """The text of a message, which is a string or a list of parts."""
    if not isinstance(content, list):
        return str(content or "")
    return "\n".join(_part(part) for part in content)


def _part(part: Mapping[str, Any]) -> str:
    if part["type"] != "file":
        return str(part.get("text", ""))
    kind, _, data = str(part["file"]["file_data"]).removeprefix("data:").partition(";base64,")
    try:
        return document_text(base64.b64decode(data, validate=True), kind)
    except binascii.Error as problem:
        raise UnreadableDocument from problem


def _schema(response_format: Mapping[str, Any]) -> Schema | None:
    match response_format.get("type", "text"):
        case "json_schema":
            schema: Schema = response_format["json_schema"]["schema"]
            return schema
        case "json_object":
            return ANY_OBJECT
        case "text":
            return None
        case kind:
            raise ValueError(f"Invalid value: '{kind}' for 'response_format.type'.")


def _usage(payment: Payment) -> dict[str, Any]:
    completion = payment.output_tokens + payment.thoughts_tokens
    return {
        "prompt_tokens": payment.prompt_tokens,
        "completion_tokens": completion,
        "total_tokens": payment.prompt_tokens + completion,
        "completion_tokens_details": {"reasoning_tokens": payment.thoughts_tokens},
    }


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "sandbox"}


def _not_found(request: StandInRequest) -> Response:
    message = f"Invalid URL ({request.method} {request.path})"
    return errors.error(404, message, "invalid_request_error")
