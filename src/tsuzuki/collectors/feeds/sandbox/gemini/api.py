"""The application: keys, models, prompts with their documents, quotas, and the count of what is paid."""

import base64
import binascii
import re
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tsuzuki.collectors.feeds.sandbox.language_model.answers import Prompt, Schema
from tsuzuki.collectors.feeds.sandbox.language_model.documents import (
    UnreadableDocument,
    document_text,
)
from tsuzuki.collectors.feeds.sandbox.language_model.payments import (
    Payment,
    Payments,
    payment_routes,
)
from tsuzuki.sandbox.cases import Cases, PlannedCase, case_routes
from tsuzuki.sandbox.exchange import Response, Route, Router, StandInRequest, json_response

from . import errors
from .cases import GeminiCase
from .replies import GeminiReply, reply

KEY = "sandbox-key"
VERSIONS = ("v1", "v1beta")
MODELS = ("gemini-flash-lite-latest", "gemini-flash-latest", "gemini-pro-latest")
SLOW_SECONDS = 5.0
JSON = "application/json"


@dataclass
class Gemini:
    """The application of a `StandIn`. Its fields may be set anew while it serves."""

    key: str = KEY
    models: Sequence[str] = MODELS
    thoughts_tokens: int = 0
    """How many tokens each answer spends on thinking."""

    requests_per_minute: int | None = None
    requests_per_day: int | None = None
    """After so many paid requests of a model, its 429; `new_minute` and `new_day` let requests in again."""

    cases: Cases[GeminiCase] = field(default_factory=lambda: Cases(GeminiCase))
    paid: Payments = field(default_factory=Payments)

    def __post_init__(self) -> None:
        self._lock = threading.Lock()
        self._minute: dict[str, int] = {}
        self._day: dict[str, int] = {}
        self.control_routes = [*case_routes(self.cases), *payment_routes(self.paid)]
        routes = [
            Route("GET", "/{version}/models", self._list),
            Route("GET", "/{version}/models/{model}", self._get),
            Route("POST", "/{version}/models/{model}:generateContent", self._generate),
        ]
        self._router = Router(routes, otherwise=_not_found)

    def __call__(self, request: StandInRequest) -> Response:
        key = request.headers.get("x-goog-api-key") or request.query.get("key")
        if not key:
            return errors.missing_key()
        return errors.wrong_key() if key != self.key else self._router(request)

    def new_minute(self) -> None:
        with self._lock:
            self._minute.clear()

    def new_day(self) -> None:
        with self._lock:
            self._minute.clear()
            self._day.clear()

    def _list(self, request: StandInRequest) -> Response:
        if request.params["version"] not in VERSIONS:
            return _not_found(request)
        return json_response({"models": [_model(name) for name in self.models]})

    def _get(self, request: StandInRequest) -> Response:
        version, model = request.params["version"], request.params["model"]
        if model not in self.models or version not in VERSIONS:
            return errors.unknown_model(version, model)
        return json_response(_model(model))

    def _generate(self, request: StandInRequest) -> Response:
        version, model = request.params["version"], request.params["model"]
        if model not in self.models or version not in VERSIONS:
            return errors.unknown_model(version, model)
        try:
            asked = _Asked.of(request.json())
        except UnreadableDocument:
            return errors.invalid_argument()
        except (ValueError, TypeError, AttributeError) as problem:
            return errors.invalid_argument(f"Invalid JSON payload received. {problem}")
        planned = self.cases.take(asked.prompt.whole)
        refused = self._refusal(planned, model)
        return refused or self._answer(asked, planned, model)

    def _refusal(self, planned: PlannedCase[GeminiCase] | None, model: str) -> Response | None:
        """The error of the case, or of a quota that is used up. A request let in is counted."""
        if planned is not None:
            refused = errors.of_case(planned.case, model, planned.seconds)
            if refused is not None:
                return refused
        with self._lock:
            minute, day = self._minute.get(model, 0), self._day.get(model, 0)
            for span, used, limit in (
                ("Day", day, self.requests_per_day),
                ("Minute", minute, self.requests_per_minute),
            ):
                if limit is not None and used >= limit:
                    seconds = errors.RETRY_SECONDS
                    return errors.quota(model, [span], limit=limit, seconds=seconds)
            self._minute[model], self._day[model] = minute + 1, day + 1
        return None

    def _answer(
        self, asked: "_Asked", planned: PlannedCase[GeminiCase] | None, model: str
    ) -> Response:
        case = planned.case if planned else None
        made = reply(
            asked.prompt,
            asked.schema,
            case=case,
            output_tokens_max=asked.output_tokens_max,
            thoughts_tokens=self.thoughts_tokens,
        )
        self.paid.add(_payment(made, asked.prompt, case, model))
        sent = json_response(made.as_dict(model, self.paid.count()))
        held = SLOW_SECONDS if planned is None or planned.seconds is None else planned.seconds
        return Response(
            body=sent.body,
            held_seconds=held if case is GeminiCase.SLOW else 0.0,
            lost=case is GeminiCase.REPLY_LOST,
        )


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """What the body of a request asks for."""

    prompt: Prompt
    schema: Schema | None
    output_tokens_max: int | None

    @classmethod
    def of(cls, body: Mapping[str, Any]) -> "_Asked":
        contents = body.get("contents") or []
        if not contents:
            raise ValueError("contents is not specified")
        config = _field(body, "generationConfig") or {}
        schema = _field(config, "responseJsonSchema") or _field(config, "responseSchema")
        if schema is not None and _field(config, "responseMimeType") != JSON:
            raise ValueError(f"A response schema needs response_mime_type {JSON}")
        instructions = (_field(body, "systemInstruction") or {}).get("parts", [])
        said = [
            _part(part)
            for content in contents
            if content.get("role", "user") == "user"
            for part in content.get("parts", [])
        ]
        return cls(
            prompt=Prompt(
                instructions="\n".join(_part(part) for part in instructions), text="\n".join(said)
            ),
            schema=schema,
            output_tokens_max=_field(config, "maxOutputTokens"),
        )


def _field(message: Mapping[str, Any], name: str) -> Any:
    """A field under its JSON name or its original one, as Google reads both."""
    original = re.sub("[A-Z]", lambda letter: f"_{letter[0].lower()}", name)
    return message.get(name, message.get(original))


def _part(part: Mapping[str, Any]) -> str:
    """The text of one part; of a document what can be read in it."""
    inline = _field(part, "inlineData")
    if inline is None:
        return str(part.get("text", ""))
    try:
        data = base64.b64decode(inline["data"], altchars=b"-_", validate=True)
    except binascii.Error as problem:
        raise ValueError(f"inline_data.data: {problem}") from problem
    return document_text(data, str(_field(inline, "mimeType")))


def _payment(made: GeminiReply, prompt: Prompt, case: GeminiCase | None, model: str) -> Payment:
    return Payment(
        model=model,
        case=case.value if case else "",
        text=prompt.whole,
        prompt_tokens=made.prompt_tokens,
        output_tokens=made.output_tokens,
        thoughts_tokens=made.thoughts_tokens,
    )


def _model(name: str) -> dict[str, Any]:
    return {
        "name": f"models/{name}",
        "version": "sandbox",
        "displayName": name.replace("-", " ").title(),
        "inputTokenLimit": 1_048_576,
        "outputTokenLimit": 65_536,
        "supportedGenerationMethods": ["generateContent"],
    }


def _not_found(_request: StandInRequest) -> Response:
    return errors.error(404, "NOT_FOUND", "Requested entity was not found.")
