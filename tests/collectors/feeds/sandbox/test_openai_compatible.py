"""The OpenAI-compatible stand-in, asked by OpenAI's own client: answers, cases, and the count of payments."""

import base64
import json
from collections.abc import Iterator
from typing import Any

import httpx2
import openai
import pytest
from openai import OpenAI

from tsuzuki.collectors.feeds.sandbox.openai_compatible import KEY, CompletionCase, OpenAICompatible
from tsuzuki.sandbox.server import StandIn

MODEL = "sandbox-model"
SCHEMA = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": ["worth", "not_worth", "not_ready"]},
        "summary": {"type": "string"},
    },
    "required": ["verdict", "summary"],
    "additionalProperties": False,
}
FORMAT = {
    "type": "json_schema",
    "json_schema": {"name": "answer", "schema": SCHEMA, "strict": True},
}
PAGE = "<page>The ministry opened a bridge. It is long. It is red.</page>"


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    with StandIn(OpenAICompatible()) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: StandIn) -> Iterator[OpenAI]:
    """One for all: making it costs more than any test."""
    with OpenAI(base_url=f"{server.url}/v1", api_key=KEY, max_retries=0, timeout=5) as client:
        yield client


@pytest.fixture(autouse=True)
def model(server: StandIn) -> OpenAICompatible:
    model = server.application
    assert isinstance(model, OpenAICompatible)
    model.cases.clear()
    model.paid.reset()
    model.reasoning_tokens = 0
    return model


def ask(client: OpenAI, text: Any = PAGE, **options: Any) -> Any:
    messages = [
        {"role": "system", "content": "人事異動 is not worth a post."},
        {"role": "user", "content": text},
    ]
    given = {"model": MODEL, "messages": messages, "response_format": FORMAT, **options}
    return client.chat.completions.create(**given)


@pytest.mark.parametrize(
    ("page", "verdict"),
    [("A bridge opens.", "worth"), ("準備中", "not_ready"), ("A personnel notice.", "not_worth")],
)
def test_the_answer_follows_from_the_page(client: OpenAI, page: str, verdict: str) -> None:
    found = ask(client, page)
    (choice,) = found.choices
    assert json.loads(choice.message.content) == {"verdict": verdict, "summary": page}
    assert (choice.finish_reason, found.model) == ("stop", MODEL)


def test_text_and_any_json_are_answered_too(client: OpenAI) -> None:
    summary = "The ministry opened a bridge. It is long."
    plain = ask(client, response_format={"type": "text"})
    assert plain.choices[0].message.content == summary
    some_json = ask(client, response_format={"type": "json_object"})
    assert json.loads(some_json.choices[0].message.content) == {"summary": summary}


def test_usage_is_what_is_counted_as_paid(model: OpenAICompatible, client: OpenAI) -> None:
    model.reasoning_tokens = 7
    usage = ask(client).usage
    (counted,) = model.paid.by_model().values()
    assert counted["requests"] == 1
    assert usage.prompt_tokens == counted["prompt_tokens"]
    assert usage.completion_tokens == counted["output_tokens"] + 7
    assert usage.completion_tokens_details.reasoning_tokens == 7


def test_a_limit_on_tokens_cuts_the_answer(model: OpenAICompatible, client: OpenAI) -> None:
    for name in ("max_tokens", "max_completion_tokens"):
        choice = ask(client, **{name: 5}).choices[0]
        assert (choice.finish_reason, len(choice.message.content)) == ("length", 20)


ANSWERED = {
    CompletionCase.CUT_OFF: ("length", True),
    CompletionCase.CUT_OFF_EMPTY: ("length", False),
    CompletionCase.CONTENT_FILTER: ("content_filter", False),
    CompletionCase.REFUSAL: ("stop", False),
    CompletionCase.BAD_ENUM: ("stop", True),
    CompletionCase.TEXT_AROUND_JSON: ("stop", True),
}


@pytest.mark.parametrize("case", ANSWERED)
def test_a_bad_answer_is_paid(
    model: OpenAICompatible, client: OpenAI, case: CompletionCase
) -> None:
    model.cases.add(case)
    (choice,) = ask(client).choices
    reason, has_text = ANSWERED[case]
    assert (choice.finish_reason, bool(choice.message.content)) == (reason, has_text)
    assert (choice.message.refusal is not None) is (case is CompletionCase.REFUSAL)
    assert [payment.case for payment in model.paid.made] == [case.value]
    if case is CompletionCase.BAD_ENUM:
        assert json.loads(choice.message.content)["verdict"] == "perhaps"


def test_an_answer_may_have_no_choice(model: OpenAICompatible, client: OpenAI) -> None:
    model.cases.add("no_choices")
    assert ask(client).choices == []
    assert model.paid.count() == 1


@pytest.mark.parametrize(
    ("case", "error", "code"),
    [
        ("rate_limit", openai.RateLimitError, "rate_limit_exceeded"),
        ("insufficient_quota", openai.RateLimitError, "insufficient_quota"),
        ("bad_request", openai.BadRequestError, None),
        ("server_error", openai.InternalServerError, None),
        ("overloaded", openai.InternalServerError, None),
        ("bad_gateway", openai.InternalServerError, None),
    ],
)
def test_an_error_is_not_paid(
    model: OpenAICompatible,
    client: OpenAI,
    case: str,
    error: type[openai.APIStatusError],
    code: str | None,
) -> None:
    model.cases.add(case, seconds=12)
    with pytest.raises(error) as caught:
        ask(client)
    assert caught.value.code == code
    delay = caught.value.response.headers.get("Retry-After")
    assert delay == ("12" if case == "rate_limit" else None)
    assert model.paid.count() == 0


def test_a_lost_reply_is_paid_and_a_lost_request_is_not(
    model: OpenAICompatible, client: OpenAI
) -> None:
    for case, paid in (("request_lost", 0), ("reply_lost", 1)):
        model.cases.add(case)
        with pytest.raises(openai.APIConnectionError):
            ask(client)
        assert model.paid.count() == paid


def test_a_slow_answer_is_paid_before_its_client_gives_up(
    model: OpenAICompatible, client: OpenAI
) -> None:
    model.cases.add("slow", seconds=60)
    with pytest.raises(openai.APITimeoutError):
        ask(client, timeout=0.1)
    assert model.paid.count() == 1


def test_models_are_listed_and_an_unknown_one_is_not_found(client: OpenAI) -> None:
    assert MODEL in [one.id for one in client.models.list()]
    with pytest.raises(openai.NotFoundError) as caught:
        ask(client, model="gpt-0")
    assert caught.value.code == "model_not_found"


def test_keys_are_checked_unless_any_will_do(
    server: StandIn, model: OpenAICompatible, client: OpenAI
) -> None:
    stranger = client.with_options(api_key="wrong")
    with pytest.raises(openai.AuthenticationError) as caught:
        stranger.models.list()
    assert caught.value.code == "invalid_api_key"
    assert httpx2.get(f"{server.url}/v1/models").status_code == 401
    model.key = None
    assert stranger.models.list().data
    model.key = KEY


def test_a_file_is_read_and_a_broken_one_is_refused(client: OpenAI) -> None:
    text = base64.b64encode("準備中".encode()).decode()
    for data, sound in (
        (f"data:text/plain;base64,{text}", True),
        ("data:application/pdf;base64,AA", False),
    ):
        parts = [{"type": "file", "file": {"filename": "a", "file_data": data}}]
        if sound:
            assert "not_ready" in ask(client, parts).choices[0].message.content
        else:
            with pytest.raises(openai.BadRequestError):
                ask(client, parts)


@pytest.mark.parametrize(
    "options", [{"messages": []}, {"stream": True}, {"response_format": {"type": "xml"}}]
)
def test_what_cannot_be_answered_is_refused(client: OpenAI, options: dict[str, Any]) -> None:
    with pytest.raises(openai.BadRequestError):
        ask(client, **options)


def test_every_case_and_the_count_are_to_be_had_over_http(
    server: StandIn, model: OpenAICompatible, client: OpenAI
) -> None:
    url = f"{server.url}/_sandbox"
    for case in CompletionCase:
        assert httpx2.post(f"{url}/cases", json={"case": case.value}).status_code == 201
    assert [planned.case for planned in model.cases.waiting] == list(CompletionCase)
    httpx2.delete(f"{url}/cases")
    ask(client)
    assert httpx2.get(f"{url}/paid").json()["models"][MODEL]["requests"] == 1
