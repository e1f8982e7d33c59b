"""A stand-in for the Gemini API: `models`, `models.get` and `models.generateContent`, under /v1beta and /v1.

    with StandIn(Gemini()) as server:
        client = genai.Client(api_key=KEY, http_options={"base_url": server.url})

It answers by rule (`language_model.answers`), counts the requests paid (`Gemini.paid`) and does on demand what
hurts (`Gemini.cases`, `GeminiCase`). Errors have the bodies of the real service.
"""

from .api import KEY, Gemini
from .cases import GeminiCase

__all__ = ["KEY", "Gemini", "GeminiCase"]
