"""Gemini: `models.generateContent` with a JSON schema. Pages are sent as text, PDFs as the text read from them."""

import re
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import quote

from tsuzuki.collectors.feeds.model.answers import checked_answer
from tsuzuki.collectors.feeds.model.connection import ModelConnection, number_in
from tsuzuki.collectors.feeds.model.prices import price_of
from tsuzuki.collectors.feeds.model.prompts import message_of, schema_of
from tsuzuki.collectors.feeds.model.protocol import ModelAnswer, Question, Usage
from tsuzuki.collectors.feeds.options import GEMINI_MODEL, ModelSettings
from tsuzuki.model.clock import Clock

BASE_URL = "https://generativelanguage.googleapis.com"
VERSION = "v1beta"
PRO_THINKING_TOKENS = 128
"""The least that Gemini 2.5 Pro accepts."""


class GeminiModel:
    """One model behind one key."""

    def __init__(
        self,
        settings: ModelSettings,
        *,
        name: str,
        api_key: str,
        clock: Clock,
        has_answered: Callable[[], bool],
    ) -> None:
        self.name = name
        self._model = (settings.model or GEMINI_MODEL).removeprefix("models/")
        self.identity = f"gemini/{self._model}/{settings.output_tokens_max}"
        self._connection = ModelConnection(
            settings,
            name=name,
            model=self._model,
            base_url=_versioned(settings.base_url or BASE_URL),
            headers={"x-goog-api-key": api_key},
            price=price_of(settings, self._model),
            clock=clock,
            has_answered=has_answered,
        )

    def ask(self, question: Question) -> ModelAnswer:
        path = f"/models/{quote(self._model, safe='')}:generateContent"
        answer = self._connection.post(path, self._request(question))
        candidate = _first(answer.get("candidates"))
        raw = _text(candidate or {})
        usage = self._usage(question, answer, raw)
        feedback = answer.get("promptFeedback")
        if isinstance(feedback, Mapping) and feedback.get("blockReason"):
            raise self._connection.filtered(str(feedback["blockReason"]), usage)
        if candidate is None and "usageMetadata" not in answer:
            raise self._connection.malformed("it contains neither an answer nor usage data")
        match (candidate or {"finishReason": "no answer"}).get("finishReason"):
            case "STOP" | None:
                return checked_answer(question, raw, usage, model_name=self.name)
            case "MAX_TOKENS":
                raise self._connection.cut_off(usage, raw=raw)
            case reason:
                raise self._connection.filtered(str(reason), usage, raw=raw)

    def estimated_tokens(self, question: Question) -> int:
        return self._connection.estimated_usage(question).tokens

    def estimated_cost_micros(self, question: Question) -> int | None:
        return self._connection.estimated_usage(question).cost_micros

    def check_access(self) -> str:
        self._connection.get(f"/models/{quote(self._model, safe='')}")
        return f"{self._model} responds and accepts the key"

    def close(self) -> None:
        self._connection.close()

    def _request(self, question: Question) -> dict[str, Any]:
        config: dict[str, Any] = {
            "responseMimeType": "application/json",
            "responseJsonSchema": schema_of(question),
            "maxOutputTokens": self._connection.output_tokens_max,
        }
        thinking = _thinking(self._model)
        if thinking is not None:
            config["thinkingConfig"] = thinking
        return {
            "systemInstruction": {"parts": [{"text": question.instructions}]},
            "contents": [{"role": "user", "parts": [{"text": message_of(question)}]}],
            "generationConfig": config,
        }

    def _usage(self, question: Question, answer: Mapping[str, Any], raw: str) -> Usage:
        counts = answer.get("usageMetadata")
        if not isinstance(counts, Mapping):
            return self._connection.estimated_usage(question, raw)
        return self._connection.usage(
            number_in(counts, "promptTokenCount", "toolUsePromptTokenCount"),
            number_in(counts, "candidatesTokenCount", "thoughtsTokenCount"),
        )


def _versioned(base_url: str) -> str:
    bare = base_url.rstrip("/")
    return bare if re.search(r"/v\d\w*$", bare) else f"{bare}/{VERSION}"


def _thinking(model: str) -> dict[str, Any] | None:
    """As little thinking as the model allows: it is paid, and counts towards the length of the answer."""
    if not model.startswith("gemini-"):  # Gemma does not know the setting
        return None
    if not model.startswith("gemini-2"):
        return {"thinkingLevel": "low"}
    return {"thinkingBudget": PRO_THINKING_TOKENS if "-pro" in model else 0}


def _first(candidates: object) -> Mapping[str, Any] | None:
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    return first if isinstance(first, Mapping) else None


def _text(candidate: Mapping[str, Any]) -> str:
    """What was said, without the summary of what was thought."""
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, Mapping) else None
    texts = [
        part.get("text")
        for part in (parts if isinstance(parts, list) else [])
        if isinstance(part, Mapping) and not part.get("thought")
    ]
    return "".join(text for text in texts if isinstance(text, str))
