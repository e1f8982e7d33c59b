"""The answers of the Gemini API that are paid: text, finish reason and usage."""

from collections.abc import Mapping
from dataclasses import dataclass
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

from .cases import GeminiCase

BLOCKED = {"category": "HARM_CATEGORY_DANGEROUS_CONTENT", "probability": "HIGH", "blocked": True}


@dataclass(frozen=True, kw_only=True)
class GeminiReply:
    """One answer. `candidate` is None where the service gives none."""

    candidate: Mapping[str, Any] | None
    prompt_feedback: Mapping[str, Any] | None = None
    prompt_tokens: int
    output_tokens: int = 0
    thoughts_tokens: int = 0

    def as_dict(self, model: str, number: int) -> dict[str, Any]:
        usage = {
            "promptTokenCount": self.prompt_tokens,
            "candidatesTokenCount": self.output_tokens,
            "totalTokenCount": self.prompt_tokens + self.output_tokens + self.thoughts_tokens,
            "promptTokensDetails": [{"modality": "TEXT", "tokenCount": self.prompt_tokens}],
            "thoughtsTokenCount": self.thoughts_tokens,
        }
        document = {
            "candidates": None if self.candidate is None else [self.candidate],
            "promptFeedback": self.prompt_feedback,
            "usageMetadata": {name: value for name, value in usage.items() if value},
            "modelVersion": model,
            "responseId": f"sandbox-{number}",
        }
        return {name: value for name, value in document.items() if value is not None}


def reply(
    prompt: Prompt,
    schema: Schema | None,
    *,
    case: GeminiCase | None,
    output_tokens_max: int | None,
    thoughts_tokens: int,
) -> GeminiReply:
    """What is answered to a prompt, in one of the cases or plainly."""
    prompt_tokens = token_count(prompt.whole)
    if case is GeminiCase.NO_CANDIDATES:
        return GeminiReply(candidate=None, prompt_tokens=prompt_tokens)
    if case is GeminiCase.BLOCKED_PROMPT:
        feedback = {"blockReason": "PROHIBITED_CONTENT"}
        return GeminiReply(candidate=None, prompt_feedback=feedback, prompt_tokens=prompt_tokens)
    text, reason = _text(prompt, schema, case)
    if reason == "STOP" and output_tokens_max is not None:
        left = max(output_tokens_max - thoughts_tokens, 0)
        if token_count(text) > left:
            text, reason = first_tokens(text, left), "MAX_TOKENS"
    return GeminiReply(
        candidate=_candidate(text, reason),
        prompt_tokens=prompt_tokens,
        output_tokens=token_count(text),
        thoughts_tokens=thoughts_tokens,
    )


def _text(prompt: Prompt, schema: Schema | None, case: GeminiCase | None) -> tuple[str, str]:
    """The text and the finish reason."""
    if case is GeminiCase.BAD_ENUM:
        return answer_with_bad_enum(prompt, schema), "STOP"
    text = answer(prompt, schema)
    half = text[: len(text) // 2]
    answers = {
        GeminiCase.CUT_OFF: (half, "MAX_TOKENS"),
        GeminiCase.CUT_OFF_EMPTY: ("", "MAX_TOKENS"),
        GeminiCase.SAFETY: ("", "SAFETY"),
        GeminiCase.RECITATION: (half, "RECITATION"),
        GeminiCase.TEXT_AROUND_JSON: (text_around(text), "STOP"),
    }
    return (text, "STOP") if case is None else answers.get(case, (text, "STOP"))


def _candidate(text: str, reason: str) -> dict[str, Any]:
    candidate: dict[str, Any] = {"finishReason": reason, "index": 0}
    if reason == "SAFETY":
        candidate["safetyRatings"] = [BLOCKED]
    else:
        candidate["content"] = {"role": "model"}
    if text:
        candidate["content"]["parts"] = [{"text": text}]
    return candidate
