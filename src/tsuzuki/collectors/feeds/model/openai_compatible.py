"""OpenAI's API, `chat/completions` with a JSON schema, as Ollama, vLLM and many others speak it too."""

from collections.abc import Callable, Mapping
from typing import Any

from tsuzuki.collectors.feeds.model.answers import checked_answer
from tsuzuki.collectors.feeds.model.connection import ModelConnection, number_in
from tsuzuki.collectors.feeds.model.prices import price_of
from tsuzuki.collectors.feeds.model.prompts import message_of, schema_of
from tsuzuki.collectors.feeds.model.protocol import ModelAnswer, Question, Usage
from tsuzuki.collectors.feeds.options import ModelSettings
from tsuzuki.model.clock import Clock

BASE_URL = "https://api.openai.com/v1"
END_OF_THOUGHT = "</think>"
"""Some servers leave the thoughts of a local model in its answer."""


class OpenAiCompatibleModel:
    """One model of one server."""

    def __init__(
        self,
        settings: ModelSettings,
        *,
        name: str,
        model: str,
        api_key: str | None,
        clock: Clock,
        has_answered: Callable[[], bool],
    ) -> None:
        self.name = name
        self._model = model
        base_url = (settings.base_url or BASE_URL).rstrip("/")
        self.identity = f"openai/{base_url}/{model}/{settings.output_tokens_max}"
        # OpenAI refuses the old name for models that think; others do not know the new one.
        is_openai = settings.base_url is None
        self._limit_name = "max_completion_tokens" if is_openai else "max_tokens"
        self._connection = ModelConnection(
            settings,
            name=name,
            model=model,
            base_url=base_url,
            headers={"Authorization": f"Bearer {api_key}"} if api_key else {},
            price=price_of(settings, model),
            clock=clock,
            has_answered=has_answered,
        )

    def ask(self, question: Question) -> ModelAnswer:
        answer = self._connection.post("/chat/completions", self._request(question))
        choice = _first(answer.get("choices"))
        message = choice.get("message") if choice else None
        if choice is None or not isinstance(message, Mapping):
            if isinstance(answer.get("usage"), Mapping):
                raise self._connection.filtered("no answer", self._usage(question, answer, ""))
            raise self._connection.malformed("it contains neither an answer nor usage data")
        raw = _text(message.get("content"))
        usage = self._usage(question, answer, raw)
        if message.get("refusal"):
            raise self._connection.filtered(str(message["refusal"]), usage, raw=raw)
        match choice.get("finish_reason"):
            case "length":
                raise self._connection.cut_off(usage, raw=raw)
            case "content_filter":
                raise self._connection.filtered("content_filter", usage, raw=raw)
            case _:
                return checked_answer(question, raw, usage, model_name=self.name)

    def estimated_tokens(self, question: Question) -> int:
        return self._connection.estimated_usage(question).tokens

    def estimated_cost_micros(self, question: Question) -> int | None:
        return self._connection.estimated_usage(question).cost_micros

    def check_access(self) -> str:
        """By the list of models: not every server tells of a single one."""
        self._connection.get("/models")
        return "the server responds and accepts the key"

    def close(self) -> None:
        self._connection.close()

    def _request(self, question: Question) -> dict[str, Any]:
        # `strict` needs a schema that allows nothing else.
        schema = {**schema_of(question), "additionalProperties": False}
        return {
            "model": self._model,
            "messages": [
                {"role": "system", "content": question.instructions},
                {"role": "user", "content": message_of(question)},
            ],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": question.step.value, "strict": True, "schema": schema},
            },
            self._limit_name: self._connection.output_tokens_max,
        }

    def _usage(self, question: Question, answer: Mapping[str, Any], raw: str) -> Usage:
        counts = answer.get("usage")
        if not isinstance(counts, Mapping):
            return self._connection.estimated_usage(question, raw)
        return self._connection.usage(
            number_in(counts, "prompt_tokens"), number_in(counts, "completion_tokens")
        )


def _first(choices: object) -> Mapping[str, Any] | None:
    first = choices[0] if isinstance(choices, list) and choices else None
    return first if isinstance(first, Mapping) else None


def _text(content: object) -> str:
    """What was said: a text, or a list of parts with texts."""
    if isinstance(content, list):
        parts = [part.get("text") for part in content if isinstance(part, Mapping)]
        content = "".join(part for part in parts if isinstance(part, str))
    return content.rpartition(END_OF_THOUGHT)[2] if isinstance(content, str) else ""
