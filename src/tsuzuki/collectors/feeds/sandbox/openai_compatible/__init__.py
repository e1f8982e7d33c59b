"""A stand-in for a server that speaks OpenAI's chat completions, as Ollama, vLLM and others do.

    with StandIn(OpenAICompatible()) as server:
        client = openai.OpenAI(base_url=f"{server.url}/v1", api_key=KEY)

It answers by the same rule as the one for Gemini (`language_model.answers`), counts the requests paid
(`OpenAICompatible.paid`) and does on demand what hurts (`OpenAICompatible.cases`, `CompletionCase`).
"""

from tsuzuki.sandbox.stand_in_kind import StandInContext

from .api import KEY, OpenAICompatible
from .cases import CompletionCase

__all__ = ["KEY", "CompletionCase", "OpenAICompatible", "start"]


def start(context: StandInContext) -> dict[str, str]:
    """Start it in `tsuzuki sandbox`."""
    server = context.serve(OpenAICompatible())
    return {"SANDBOX_OPENAI_URL": f"{server.url}/v1", "SANDBOX_OPENAI_KEY": KEY}
