"""A server with OpenAI's API over real HTTP: each way in which it can answer, and what that means."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from tsuzuki.collectors.feeds.model.factory import build_model
from tsuzuki.collectors.feeds.model.protocol import (
    BlockCause,
    LanguageModel,
    ModelBlocked,
    ModelMisconfigured,
    ModelOutOfQuota,
    ModelUnavailable,
    Verdict,
)
from tsuzuki.collectors.feeds.sandbox.openai_compatible import KEY, CompletionCase, OpenAICompatible
from tsuzuki.model.clock import ManualClock, SystemClock
from tsuzuki.outward.errors import RateLimitedUntil, SourceFailed
from tsuzuki.sandbox.faults import StandInFault
from tsuzuki.sandbox.server import StandIn

from .model_fixture import TEXT, screening, settings, summary

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MIDNIGHT_PACIFIC = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)
DELAY_SECONDS = 7.0


@pytest.fixture
def openai() -> OpenAICompatible:
    return OpenAICompatible()


@pytest.fixture
def server(openai: OpenAICompatible) -> Iterator[StandIn]:
    with StandIn(openai) as server:
        yield server


@pytest.fixture
def build(server: StandIn, openai: OpenAICompatible) -> Iterator[Callable[..., LanguageModel]]:
    built: list[LanguageModel] = []

    def build(*, is_slow: bool = False, **options: object) -> LanguageModel:
        about = {"base_url": f"{server.url}/v1/", "api_key": KEY, "model": openai.models[0]}
        model = build_model(
            settings("openai", **{**about, **options}),
            name="local",
            clock=SystemClock() if is_slow else ManualClock(NOON),
        )
        built.append(model)
        return model

    yield build
    for model in built:
        model.close()


def test_verdicts_and_summaries_come_through_the_schema(
    build: Callable[..., LanguageModel], openai: OpenAICompatible
) -> None:
    model = build()
    assert model.ask(screening()).verdict is Verdict.WORTH
    assert model.ask(screening("準備中です。" * 20)).verdict is Verdict.NOT_READY
    answer = model.ask(summary())
    assert answer.text == "総務省は統計を公表した。対象は全国である。"
    payment = openai.paid.made[-1]
    assert answer.usage.input_tokens == payment.prompt_tokens
    assert answer.usage.output_tokens == payment.output_tokens + payment.thoughts_tokens
    assert answer.usage.cost_micros is None


def test_the_request_has_a_strict_schema_and_no_order_from_the_page(
    build: Callable[..., LanguageModel], server: StandIn
) -> None:
    build(output_tokens_max=512).ask(screening())
    (seen,) = server.requests
    assert seen.request.path == "/v1/chat/completions"
    assert seen.request.headers["authorization"] == f"Bearer {KEY}"
    body = seen.request.json()
    assert body["max_tokens"] == 512
    schema = body["response_format"]["json_schema"]
    assert schema["strict"] is True
    assert schema["schema"]["additionalProperties"] is False
    system, user = body["messages"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert TEXT not in system["content"]
    assert TEXT in user["content"]


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a case leads to."""

    error: type[SourceFailed]
    why: BlockCause | None = None
    until: datetime | None = None
    maybe_paid: bool = False


CASES = {
    CompletionCase.RATE_LIMIT: Expected(
        error=RateLimitedUntil, until=NOON + timedelta(seconds=DELAY_SECONDS)
    ),
    CompletionCase.INSUFFICIENT_QUOTA: Expected(error=ModelOutOfQuota, until=MIDNIGHT_PACIFIC),
    CompletionCase.CUT_OFF: Expected(error=ModelBlocked, why=BlockCause.CUT_OFF),
    CompletionCase.CUT_OFF_EMPTY: Expected(error=ModelBlocked, why=BlockCause.CUT_OFF),
    CompletionCase.CONTENT_FILTER: Expected(error=ModelBlocked, why=BlockCause.BLOCKED),
    CompletionCase.REFUSAL: Expected(error=ModelBlocked, why=BlockCause.BLOCKED),
    CompletionCase.NO_CHOICES: Expected(error=ModelBlocked, why=BlockCause.BLOCKED),
    CompletionCase.BAD_ENUM: Expected(error=ModelBlocked, why=BlockCause.INVALID),
    CompletionCase.BAD_REQUEST: Expected(error=ModelMisconfigured),
    CompletionCase.SERVER_ERROR: Expected(error=ModelUnavailable),
    CompletionCase.OVERLOADED: Expected(error=ModelUnavailable),
    CompletionCase.BAD_GATEWAY: Expected(error=ModelUnavailable, maybe_paid=True),
    CompletionCase.SLOW: Expected(error=ModelUnavailable, maybe_paid=True),
    CompletionCase.REPLY_LOST: Expected(error=ModelUnavailable, maybe_paid=True),
    CompletionCase.REQUEST_LOST: Expected(error=ModelUnavailable, maybe_paid=True),
}
ANSWERED = {CompletionCase.TEXT_AROUND_JSON}


def test_every_case_of_the_service_has_a_meaning() -> None:
    assert {*CASES} | ANSWERED == {*CompletionCase}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_leads_to_its_error_with_one_request_and_the_right_count_of_payments(
    build: Callable[..., LanguageModel],
    server: StandIn,
    openai: OpenAICompatible,
    case: CompletionCase,
) -> None:
    expected = CASES[case]
    is_slow = case is CompletionCase.SLOW
    openai.cases.add(case, seconds=0.6 if is_slow else DELAY_SECONDS)
    model = build(is_slow=is_slow, timeout=0.3 if is_slow else 60.0)
    with pytest.raises(SourceFailed) as caught:
        model.ask(screening())
    model.close()
    server.stop()  # a request is counted when its answer is over
    problem, paid = caught.value, openai.paid.count()
    assert type(problem) is expected.error
    assert server.count() == 1
    assert KEY not in str(problem.as_dict())
    match problem:
        case ModelBlocked():
            assert problem.why is expected.why
            assert (problem.is_paid, problem.usage.tokens > 0) == (paid == 1, paid == 1)
        case ModelUnavailable():
            assert problem.maybe_paid is expected.maybe_paid
            assert problem.maybe_paid or paid == 0
        case RateLimitedUntil():
            assert (problem.until, paid) == (expected.until, 0)
        case _:
            assert paid == 0
            assert problem.hint


def test_text_around_the_answer_does_not_spoil_it(
    build: Callable[..., LanguageModel], openai: OpenAICompatible
) -> None:
    openai.cases.add(CompletionCase.TEXT_AROUND_JSON)
    assert build().ask(screening()).verdict is Verdict.WORTH
    assert openai.paid.count() == 1


@pytest.mark.parametrize(
    ("options", "hint"), [({"api_key": "wrong-key"}, "api_key"), ({"model": "gone"}, "model")]
)
def test_a_wrong_key_or_model_stops_the_job(
    build: Callable[..., LanguageModel], options: dict[str, str], hint: str
) -> None:
    with pytest.raises(ModelMisconfigured) as caught:
        build(**options).ask(screening())
    assert hint in (caught.value.hint or "")


SAID = '{"choices": [{"finish_reason": "stop", "message": {"content": %s}}]}'


@pytest.mark.parametrize(
    "content",
    [
        r'"{\"verdict\": \"worth\"}"',
        r'[{"type": "text", "text": "{\"verdict\": \"worth\"}"}]',
        r'"<think>{maybe}? [no]</think>\n{\"verdict\": \"worth\"}"',
    ],
)
def test_servers_of_other_makers_are_understood_and_their_missing_usage_is_estimated(
    build: Callable[..., LanguageModel], server: StandIn, content: str
) -> None:
    server.faults.add(StandInFault(status=200, body=SAID % content))
    answer = build().ask(screening())
    assert answer.verdict is Verdict.WORTH
    assert answer.usage.input_tokens > 0


@pytest.mark.parametrize(
    ("status", "body", "error"),
    [
        (404, '{"error": "model \\"x\\" not found, try pulling it first"}', ModelMisconfigured),
        (400, '{"error": {"code": "context_length_exceeded", "message": "This model\'s maximum '
         'context length is 8192 tokens"}}', ModelBlocked),
        (400, '{"error": {"code": "content_filter", "message": "filtered"}}', ModelBlocked),
        (413, "", ModelMisconfigured),
        (402, '{"error": {"code": 402, "message": "Insufficient credits"}}', ModelOutOfQuota),
        (429, '[{"error": {"code": 429, "message": "Quota", "details": [{"violations": '
         '[{"quotaId": "GenerateRequestsPerDay"}]}]}}]', ModelOutOfQuota),
        (302, "", ModelMisconfigured),
        (504, "", ModelUnavailable),
    ],
)  # fmt: skip
def test_errors_of_other_makers_are_understood(
    build: Callable[..., LanguageModel],
    server: StandIn,
    status: int,
    body: str,
    error: type[SourceFailed],
) -> None:
    server.faults.add(StandInFault(status=status, body=body))
    with pytest.raises(error):
        build().ask(screening())
