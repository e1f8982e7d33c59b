"""The stand-in for Gemini, asked by Google's own client: answers by rule, cases, quotas, the count of payments."""

import io
import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from google import genai
from google.genai import errors, types
from httpx2 import ReadError, ReadTimeout
from pypdf import PdfWriter

from tsuzuki.collectors.feeds.sandbox.gemini import KEY, Gemini, GeminiCase
from tsuzuki.sandbox.server import StandIn

MODEL = "gemini-flash-lite-latest"
SCHEMA = {
    "type": "object",
    "properties": {
        "verdict": {"type": "string", "enum": ["worth", "not_worth", "not_ready"]},
        "summary": {"type": "string"},
    },
    "required": ["verdict", "summary"],
}
PAGE = "Screen this page.\n<page>The ministry opened a bridge. It is long. It is red.</page>"


@pytest.fixture(scope="module")
def server() -> Iterator[StandIn]:
    with StandIn(Gemini()) as server:
        yield server


@pytest.fixture(scope="module")
def client(server: StandIn) -> Iterator[genai.Client]:
    """One for all: making it costs more than any test."""
    options = types.HttpOptions(base_url=server.url, timeout=5_000)
    with genai.Client(api_key=KEY, http_options=options) as client:
        yield client


@pytest.fixture(autouse=True)
def gemini(server: StandIn) -> Gemini:
    gemini = server.application
    assert isinstance(gemini, Gemini)
    gemini.cases.clear()
    gemini.paid.reset()
    gemini.new_day()
    gemini.thoughts_tokens, gemini.requests_per_minute, gemini.requests_per_day = 0, None, None
    return gemini


def ask(client: genai.Client, text: Any = PAGE, model: str = MODEL, **config: Any) -> Any:
    given = {"response_mime_type": "application/json", "response_json_schema": SCHEMA, **config}
    return client.models.generate_content(model=model, contents=text, config=given)


def refused(client: genai.Client, **options: Any) -> dict[str, Any]:
    with pytest.raises(errors.APIError) as caught:
        ask(client, **options)
    error: dict[str, Any] = caught.value.details["error"]
    assert error["code"] == caught.value.code
    return error


def details(error: dict[str, Any], kind: str) -> dict[str, Any]:
    found: dict[str, Any] = next(one for one in error["details"] if one["@type"].endswith(kind))
    return found


@pytest.mark.parametrize(
    ("page", "verdict"),
    [
        ("A bridge opens.", "worth"),
        ("このページは準備中です。", "not_ready"),
        ("Coming soon.", "not_ready"),
        ("人事異動のお知らせ", "not_worth"),
    ],
)
def test_the_verdict_follows_from_the_page_and_not_from_the_orders(
    client: genai.Client, page: str, verdict: str
) -> None:
    answer = ask(
        client,
        f"Say not_ready for 準備中 and not_worth for personnel.\n<page>{page}</page>",
        system_instruction="人事異動 is not worth a post.",
    )
    assert json.loads(answer.text)["verdict"] == verdict


@pytest.mark.parametrize(
    ("page", "summary"),
    [
        ("The bridge opened. It is long. It is red.", "The bridge opened. It is long."),
        ("省は橋を開いた。長い橋だ。赤い橋だ。", "省は橋を開いた。長い橋だ。"),
    ],
)
def test_strings_are_the_first_sentences_of_the_page(
    client: genai.Client, page: str, summary: str
) -> None:
    assert json.loads(ask(client, page).text)["summary"] == summary
    assert client.models.generate_content(model=MODEL, contents=page).text == summary


def test_the_clients_own_schema_is_filled_too(client: genai.Client) -> None:
    flat = {"type": "OBJECT", "properties": {"useful": {"type": "BOOLEAN"}}}
    answer = ask(client, response_json_schema=None, response_schema=flat)
    assert json.loads(answer.text) == {"useful": True}


def test_references_and_what_may_be_null_are_followed(client: genai.Client) -> None:
    schema = {
        "$defs": {"verdict": {"enum": ["yes", "no"]}},
        "properties": {
            "verdict": {"$ref": "#/$defs/verdict"},
            "note": {"anyOf": [{"type": "null"}, {"type": "string", "maxLength": 5}]},
            "language": {"type": "string"},
            "tags": {"type": "array", "items": {"type": "string"}},
        },
    }
    found = json.loads(ask(client, "人事異動です。", response_json_schema=schema).text)
    assert found == {"verdict": "no", "note": "人事異動で", "language": "ja", "tags": []}


def test_usage_counts_the_prompt_the_answer_and_the_thoughts(
    gemini: Gemini, client: genai.Client
) -> None:
    gemini.thoughts_tokens = 7
    usage = ask(client).usage_metadata
    assert usage.thoughts_token_count == 7
    total = usage.prompt_token_count + usage.candidates_token_count + 7
    assert usage.total_token_count == total
    assert gemini.paid.by_model()[MODEL] == {
        "requests": 1,
        "prompt_tokens": usage.prompt_token_count,
        "output_tokens": usage.candidates_token_count,
        "thoughts_tokens": 7,
    }


@pytest.mark.parametrize(("limit", "empty"), [(12, False), (5, True)])
def test_a_limit_on_tokens_cuts_the_answer_and_thoughts_count(
    gemini: Gemini, client: genai.Client, limit: int, empty: bool
) -> None:
    gemini.thoughts_tokens = 5
    answer = ask(client, max_output_tokens=limit)
    assert answer.candidates[0].finish_reason is types.FinishReason.MAX_TOKENS
    assert (answer.text is None) is empty


def test_a_pdf_is_read_and_a_broken_or_encrypted_one_is_refused(client: genai.Client) -> None:
    for password, sound in ((None, True), ("secret", False)):
        writer, file = PdfWriter(), io.BytesIO()
        writer.add_blank_page(72, 72)
        if password:
            writer.encrypt(password, algorithm="RC4-128")
        writer.write(file)
        part = types.Part.from_bytes(data=file.getvalue(), mime_type="application/pdf")
        if sound:
            assert ask(client, [part, "A bridge opens."]).usage_metadata.total_token_count
        else:
            assert (
                refused(client, text=[part])["message"] == "Request contains an invalid argument."
            )
    part = types.Part.from_bytes(data=b"<html>", mime_type="application/pdf")
    assert refused(client, text=[part])["status"] == "INVALID_ARGUMENT"


def test_a_document_of_fifteen_megabytes_is_taken(client: genai.Client) -> None:
    part = types.Part.from_bytes(data=b"Bridge. " * 2_000_000, mime_type="text/plain")
    assert json.loads(ask(client, [part]).text)["summary"] == "Bridge. Bridge."


QUOTA_IDS = {
    GeminiCase.MINUTE_QUOTA: ["PerMinute"],
    GeminiCase.DAILY_QUOTA: ["PerDay"],
    GeminiCase.BOTH_QUOTAS: ["PerMinute", "PerDay"],
    GeminiCase.NOT_IN_PLAN: ["PerDay", "PerMinute"],
}


@pytest.mark.parametrize("case", QUOTA_IDS)
def test_a_quota_is_told_apart_by_its_id_only(
    gemini: Gemini, client: genai.Client, case: GeminiCase
) -> None:
    gemini.cases.add(case)
    error = refused(client)
    violations = details(error, "QuotaFailure")["violations"]
    for violation, span in zip(violations, QUOTA_IDS[case], strict=True):
        assert span in violation["quotaId"]
    assert (error["code"], error["status"]) == (429, "RESOURCE_EXHAUSTED")
    assert details(error, "RetryInfo")["retryDelay"] == "36s"
    assert ("limit: 0," in error["message"]) is (case is GeminiCase.NOT_IN_PLAN)
    assert gemini.paid.count() == 0
    ask(client)  # the case is spent


def test_a_quota_may_come_without_details(gemini: Gemini, client: genai.Client) -> None:
    gemini.cases.add("quota_without_details")
    gemini.cases.add("quota_in_text", seconds=12.5)
    bare, in_text = refused(client), refused(client)
    assert "details" not in bare
    assert "details" not in in_text
    assert "retry" not in bare["message"]
    assert in_text["message"].endswith("Please retry in 12.5s.")


ANSWERED = {
    GeminiCase.CUT_OFF: (types.FinishReason.MAX_TOKENS, True),
    GeminiCase.CUT_OFF_EMPTY: (types.FinishReason.MAX_TOKENS, False),
    GeminiCase.SAFETY: (types.FinishReason.SAFETY, False),
    GeminiCase.RECITATION: (types.FinishReason.RECITATION, True),
    GeminiCase.BAD_ENUM: (types.FinishReason.STOP, True),
    GeminiCase.TEXT_AROUND_JSON: (types.FinishReason.STOP, True),
}


@pytest.mark.parametrize("case", ANSWERED)
def test_a_bad_answer_is_paid(gemini: Gemini, client: genai.Client, case: GeminiCase) -> None:
    gemini.cases.add(case)
    answer = ask(client)
    reason, has_text = ANSWERED[case]
    assert answer.candidates[0].finish_reason is reason
    assert (answer.text is not None) is has_text
    assert [payment.case for payment in gemini.paid.made] == [case.value]
    match case:
        case GeminiCase.BAD_ENUM:
            assert json.loads(answer.text)["verdict"] not in SCHEMA["properties"]["verdict"]["enum"]
        case GeminiCase.CUT_OFF | GeminiCase.RECITATION | GeminiCase.TEXT_AROUND_JSON:
            with pytest.raises(ValueError, match=r"Unterminated|Expecting"):
                json.loads(answer.text)


def test_a_prompt_may_be_blocked_or_get_no_candidate(gemini: Gemini, client: genai.Client) -> None:
    gemini.cases.add("blocked_prompt")
    gemini.cases.add("no_candidates")
    blocked, empty = ask(client), ask(client)
    assert blocked.prompt_feedback.block_reason is types.BlockedReason.PROHIBITED_CONTENT
    assert (blocked.candidates, empty.candidates, empty.prompt_feedback) == (None, None, None)
    assert gemini.paid.count(MODEL) == 2


@pytest.mark.parametrize(
    ("case", "code"),
    [("invalid_argument", 400), ("key_suspended", 403), ("server_error", 500), ("overloaded", 503)],
)
def test_an_error_is_not_paid(gemini: Gemini, client: genai.Client, case: str, code: int) -> None:
    gemini.cases.add(case)
    assert refused(client)["code"] == code
    assert gemini.paid.count() == 0


def test_a_gateway_answers_with_a_page(gemini: Gemini, client: genai.Client) -> None:
    gemini.cases.add("bad_gateway")
    with pytest.raises(errors.ServerError, match="html"):
        ask(client)


def test_a_lost_reply_is_paid_and_a_lost_request_is_not(
    gemini: Gemini, client: genai.Client
) -> None:
    for case, paid in (("request_lost", 0), ("reply_lost", 1)):
        gemini.cases.add(case)
        with pytest.raises(ReadError):
            ask(client)
        assert gemini.paid.count() == paid


def test_a_slow_answer_is_paid_before_its_client_gives_up(
    gemini: Gemini, client: genai.Client
) -> None:
    gemini.cases.add("slow", seconds=60)
    with pytest.raises(ReadTimeout):
        ask(client, http_options=types.HttpOptions(timeout=100))
    assert gemini.paid.count() == 1


def test_cases_wait_for_a_text_and_skip(gemini: Gemini, client: genai.Client) -> None:
    gemini.cases.add("overloaded", containing="bridge", skip=1, times=None)
    ask(client)
    ask(client, "A tunnel.")
    for _ in range(2):
        assert refused(client)["code"] == 503
    gemini.cases.clear()
    ask(client)


def test_quotas_are_kept_for_each_model(gemini: Gemini, client: genai.Client) -> None:
    gemini.requests_per_minute, gemini.requests_per_day = 1, 2
    ask(client)
    assert "PerMinute" in details(refused(client), "QuotaFailure")["violations"][0]["quotaId"]
    ask(client, model="gemini-flash-latest")
    gemini.new_minute()
    ask(client)
    assert "PerDay" in details(refused(client), "QuotaFailure")["violations"][0]["quotaId"]
    gemini.new_day()
    ask(client)
    assert {model: one["requests"] for model, one in gemini.paid.by_model().items()} == {
        MODEL: 3,
        "gemini-flash-latest": 1,
    }


def test_models_are_listed_and_an_unknown_one_is_not_found(client: genai.Client) -> None:
    assert f"models/{MODEL}" in [model.name for model in client.models.list()]
    assert client.models.get(model=MODEL).supported_actions == ["generateContent"]
    error = refused(client, model="gemini-2.0-flash")
    assert (error["code"], error["status"]) == (404, "NOT_FOUND")
    assert "models/gemini-2.0-flash is not found for API version v1," in error["message"]


def test_keys_are_checked_and_stay_out_of_the_log(server: StandIn) -> None:
    for key, code, version in (("wrong", 400, "v1"), ("", 403, "v1beta")):
        headers = {"x-goog-api-key": key} if key else {}
        with pytest.raises(HTTPError) as caught:
            urlopen(Request(f"{server.url}/{version}/models", headers=headers))
        with caught.value as answer:
            assert json.load(answer)["error"]["code"] == code
    with urlopen(f"{server.url}/_sandbox/requests") as log:
        assert "wrong" not in log.read().decode()


def control(server: StandIn, method: str, path: str, body: Any = None) -> Any:
    data = json.dumps(body).encode() if body is not None else None
    with urlopen(Request(f"{server.url}/_sandbox{path}", data=data, method=method)) as answer:
        text = answer.read()
    return json.loads(text) if text else None


def test_every_case_and_the_count_are_to_be_had_over_http(
    server: StandIn, gemini: Gemini, client: genai.Client
) -> None:
    for case in GeminiCase:
        assert control(server, "POST", "/cases", {"case": case.value})["case"] == case.value
    shown = control(server, "GET", "/cases")
    assert shown["known"] == [one["case"] for one in shown["waiting"]]
    control(server, "DELETE", "/cases")
    assert gemini.cases.waiting == []
    ask(client)
    paid = control(server, "GET", "/paid")
    assert (paid["requests"], paid["models"][MODEL]["requests"]) == (1, 1)
    control(server, "DELETE", "/paid")
    assert control(server, "GET", "/paid") == {"requests": 0, "models": {}}


@pytest.mark.parametrize(
    "body",
    [
        {"case": "dayly_quota"},
        {"times": 1},
        [],
        {"case": "slow", "times": 0},
        {"case": "slow", "containing": 5},
    ],
)
def test_what_is_no_case_is_told(server: StandIn, body: Any) -> None:
    with pytest.raises(HTTPError) as caught:
        control(server, "POST", "/cases", body)
    with caught.value as answer:
        assert "daily_quota" in json.load(answer)["message"]
