"""Models from settings: what is missing is said, and nothing secret with it. Prices."""

import subprocess
import sys

import pytest
from genai_prices import Usage, calc_price

from tsuzuki.collectors.feeds.model.factory import build_model
from tsuzuki.collectors.feeds.model.prices import _LIST_PRICES, Price, price_of
from tsuzuki.collectors.feeds.model.protocol import ModelMisconfigured
from tsuzuki.model.clock import SystemClock

from .model_fixture import settings


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"provider": "gemini"}, "the API key of model main is missing"),
        ({"provider": "gemini", "api_key": "  "}, "the API key of model main is missing"),
        ({"provider": "gemini", "api_key": "s3crët"}, "contains spaces"),
        ({"provider": "gemini", "api_key": "s3cr et\n"}, "contains spaces"),
        ({"provider": "openai", "api_key": "s3cret"}, "has no `model`"),
        ({"provider": "openai", "model": "gpt-5-mini"}, "the API key of model main is missing"),
    ],
)
def test_what_is_missing_is_said(options: dict[str, str], said: str) -> None:
    with pytest.raises(ModelMisconfigured) as caught:
        build_model(settings(**options), name="main", clock=SystemClock())
    assert said in caught.value.message
    assert "feeds.models.main." in (caught.value.hint or "")
    assert "s3cr" not in str(caught.value.as_dict())


def test_a_server_of_ones_own_needs_no_key() -> None:
    options = {"model": "llama", "base_url": "http://127.0.0.1:11434/v1"}
    build_model(settings("openai", **options), name="main", clock=SystemClock()).close()


@pytest.mark.parametrize("model", _LIST_PRICES)
def test_list_prices_are_those_of_the_public_table(model: str) -> None:
    provider = "google" if model.startswith("gemini") else "openai"

    def dollars(**tokens: int) -> float:
        price = calc_price(Usage(**tokens), model_ref=model, provider_id=provider).total_price
        return float(price) * 1_000

    ours = _LIST_PRICES[model]
    assert ours.input == pytest.approx(dollars(input_tokens=1_000))
    assert ours.output == pytest.approx(dollars(output_tokens=1_000))


def test_a_price_in_the_settings_comes_first_and_another_server_has_none_of_its_own() -> None:
    model = "gemini-2.5-flash-lite"
    assert price_of(settings("gemini"), model) == Price(input=0.1, output=0.4)
    own = settings("gemini", dollars_per_million_input_tokens=1.0)
    assert price_of(own, model) == Price(input=1.0, output=0.4)
    assert price_of(settings("openai", base_url="http://127.0.0.1/v1"), model) is None
    assert price_of(settings("gemini"), "gemini-unheard-of") is None


def test_a_cost_is_rounded_up() -> None:
    assert Price(input=0.1, output=0.4).cost_micros(11, 1) == 2
    assert Price(input=0.0, output=0.0).cost_micros(1_000, 1_000) == 0


def test_no_heavy_library_is_loaded_for_prompts_and_models() -> None:
    code = (
        "import sys, tsuzuki.collectors.feeds.model.prompts, tsuzuki.collectors.feeds.model.factory;"
        "heavy = {'pydantic_ai', 'openai', 'google.genai', 'genai_prices'} & {*sys.modules};"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
