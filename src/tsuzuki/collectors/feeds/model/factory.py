"""The factory: a model from its settings."""

from collections.abc import Callable
from typing import assert_never

from tsuzuki.collectors.feeds.model.extractive import ExtractiveModel
from tsuzuki.collectors.feeds.model.gemini import GeminiModel
from tsuzuki.collectors.feeds.model.openai_compatible import OpenAiCompatibleModel
from tsuzuki.collectors.feeds.model.protocol import LanguageModel, ModelMisconfigured
from tsuzuki.collectors.feeds.options import ModelSettings, Provider
from tsuzuki.model.clock import Clock


def build_model(
    settings: ModelSettings,
    *,
    name: str,
    clock: Clock,
    has_answered: Callable[[], bool] = lambda: False,
) -> LanguageModel:
    """The model to close after use. `has_answered` is called if the server refuses a request as it is: true means
    that the model has answered others, so that this one's text is to blame. Raises `ModelMisconfigured`."""
    match settings.provider:
        case Provider.EXTRACTIVE:
            return ExtractiveModel(name=name)
        case Provider.GEMINI:
            return GeminiModel(
                settings,
                name=name,
                api_key=_required_key(settings, name),
                clock=clock,
                has_answered=has_answered,
            )
        case Provider.OPENAI:
            if settings.model is None:
                raise ModelMisconfigured(
                    f"the model {name} has no `model`",
                    hint=f"Set `feeds.models.{name}.model`, for example to gpt-5-mini.",
                )
            # A server of one's own, such as Ollama, needs no key.
            has_key = settings.base_url is None or settings.api_key is not None
            return OpenAiCompatibleModel(
                settings,
                name=name,
                model=settings.model,
                api_key=_required_key(settings, name) if has_key else None,
                clock=clock,
                has_answered=has_answered,
            )
        case other:
            assert_never(other)


def _required_key(settings: ModelSettings, name: str) -> str:
    key = settings.api_key.get_secret_value().strip() if settings.api_key else ""
    # Checked here: the HTTP library's error about such a header would repeat it.
    if not key or not key.isascii() or not key.isprintable() or " " in key:
        what = "contains spaces or letters that no key has" if key else "is missing"
        raise ModelMisconfigured(
            f"the API key of model {name} {what}",
            hint=f"Write `feeds.models.{name}.api_key` as ${{NAME}}, and set that variable.",
        )
    return key
