"""Prices: what a request to a model costs, in millionths of a US dollar.

The settings of a model come first. Of the rest a few public list prices are known; of any other model tokens are
counted, and money is not.
"""

import math
from dataclasses import dataclass

from tsuzuki.collectors.feeds.options import ModelSettings


@dataclass(frozen=True, kw_only=True)
class Price:
    """US dollars for a million tokens, which is the same as millionths of a dollar for one."""

    input: float
    output: float

    def cost_micros(self, input_tokens: int, output_tokens: int) -> int:
        """Rounded up: a budget is not exceeded by fractions."""
        return math.ceil(input_tokens * self.input + output_tokens * self.output)


FREE = Price(input=0, output=0)

_LIST_PRICES = {
    "gemini-flash-lite-latest": Price(input=0.30, output=2.50),
    "gemini-flash-latest": Price(input=0.75, output=3.75),
    "gemini-pro-latest": Price(input=2.00, output=12.00),
    "gemini-2.5-flash-lite": Price(input=0.10, output=0.40),
    "gemini-2.5-flash": Price(input=0.30, output=2.50),
    "gemini-3.1-flash-lite": Price(input=0.25, output=1.50),
    "gemini-3.5-flash-lite": Price(input=0.30, output=2.50),
    "gemini-3.5-flash": Price(input=1.50, output=9.00),
    "gemini-3.8-flash": Price(input=0.75, output=3.75),
    "gpt-5-mini": Price(input=0.25, output=2.00),
    "gpt-5-nano": Price(input=0.05, output=0.40),
    "gpt-5.4-mini": Price(input=0.75, output=4.50),
    "gpt-5.4-nano": Price(input=0.20, output=1.25),
}
"""Models of the size that short texts need, November 2026, at the providers' own addresses."""


def price_of(settings: ModelSettings, model: str) -> Price | None:
    """The price in the settings, or the list price if the provider itself is asked."""
    in_settings = (
        settings.dollars_per_million_input_tokens,
        settings.dollars_per_million_output_tokens,
    )
    listed = _LIST_PRICES.get(model) if settings.base_url is None else None
    if in_settings == (None, None):
        return listed
    other = listed or FREE
    dollars_in, dollars_out = in_settings
    return Price(
        input=other.input if dollars_in is None else dollars_in,
        output=other.output if dollars_out is None else dollars_out,
    )
