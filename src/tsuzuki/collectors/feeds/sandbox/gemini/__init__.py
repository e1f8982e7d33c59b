"""A stand-in for the Gemini API: `models`, `models.get` and `models.generateContent`, under /v1beta and /v1.

    with StandIn(Gemini()) as server:
        client = genai.Client(api_key=KEY, http_options={"base_url": server.url})

It answers by rule (`language_model.answers`), counts the requests paid (`Gemini.paid`) and does on demand what
hurts (`Gemini.cases`, `GeminiCase`). Errors have the bodies of the real service.
"""

from tsuzuki.sandbox.stand_in_kind import StandInContext

from .api import KEY, Gemini
from .cases import GeminiCase

__all__ = ["KEY", "Gemini", "GeminiCase", "start"]


def start(context: StandInContext) -> dict[str, str]:
    """Start it in `tsuzuki sandbox`."""
    server = context.serve(Gemini())
    return {"SANDBOX_GEMINI_URL": server.url, "SANDBOX_GEMINI_KEY": KEY}
