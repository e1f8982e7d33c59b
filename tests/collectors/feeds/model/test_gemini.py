"""Gemini over real HTTP: each way in which it can answer, and what that means for an item and a job."""

import logging
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest

from support.threads import at_once
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
from tsuzuki.collectors.feeds.sandbox.gemini import KEY, Gemini, GeminiCase
from tsuzuki.model.clock import ManualClock, SystemClock
from tsuzuki.outward.errors import RateLimitedUntil, SourceFailed
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn

from .model_fixture import TEXT, screening, settings, summary

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
MIDNIGHT_PACIFIC = datetime(2026, 3, 2, 8, 0, tzinfo=UTC)


@pytest.fixture
def gemini() -> Gemini:
    return Gemini()


@pytest.fixture
def server(gemini: Gemini) -> Iterator[StandIn]:
    with StandIn(gemini) as server:
        yield server


@pytest.fixture
def build(server: StandIn) -> Iterator[Callable[..., LanguageModel]]:
    built: list[LanguageModel] = []

    def build(*, has_answered: bool = False, **options: object) -> LanguageModel:
        about = {"base_url": server.url, "api_key": KEY, **options}
        model = build_model(
            settings("gemini", **about),
            name="default",
            clock=ManualClock(NOON),
            has_answered=lambda: has_answered,
        )
        built.append(model)
        return model

    yield build
    for model in built:
        model.close()


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        (TEXT, Verdict.WORTH),
        ("このページは準備中です。公表までお待ちください。来月に公表します。", Verdict.NOT_READY),
        ("人事異動のお知らせ。四月一日付けの異動を次のとおり発令しました。", Verdict.NOT_WORTH),
        ("The ministry has published figures. They are new.", Verdict.WORTH),
    ],
)
def test_an_article_gets_one_verdict_with_a_reason(
    build: Callable[..., LanguageModel], text: str, verdict: Verdict
) -> None:
    answer = build().ask(screening(text))
    assert (answer.verdict, answer.text) == (verdict, None)
    assert answer.why


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TEXT, "総務省は統計を公表した。対象は全国である。"),
        (
            "The ministry published figures. They are new. More.",
            "The ministry published figures. They are new.",
        ),
    ],
)
def test_a_summary_is_a_text(build: Callable[..., LanguageModel], text: str, said: str) -> None:
    answer = build().ask(summary(text))
    assert (answer.verdict, answer.text) == (None, said)


def test_tokens_of_thinking_count_and_the_price_is_that_of_the_settings(
    build: Callable[..., LanguageModel], gemini: Gemini
) -> None:
    gemini.thoughts_tokens = 50
    model = build(dollars_per_million_input_tokens=0.5, dollars_per_million_output_tokens=2.0)
    usage = model.ask(summary()).usage
    (payment,) = gemini.paid.made
    assert usage.input_tokens == payment.prompt_tokens
    assert usage.output_tokens == payment.output_tokens + 50
    assert usage.cost_micros == -(-usage.input_tokens // 2) + usage.output_tokens * 2


def test_the_estimate_is_not_less_than_what_is_used(build: Callable[..., LanguageModel]) -> None:
    model = build()
    for question in (screening(), summary("Plain English text. " * 200)):
        assert model.estimated_tokens(question) >= model.ask(question).usage.tokens


def test_the_request_is_one_question_of_json_with_the_key_in_its_header(
    build: Callable[..., LanguageModel], server: StandIn
) -> None:
    build().ask(screening())
    (seen,) = server.requests
    assert seen.request.target == "/v1beta/models/gemini-flash-lite-latest:generateContent"
    assert seen.request.headers["x-goog-api-key"] == KEY
    config = seen.request.json()["generationConfig"]
    assert config["responseMimeType"] == "application/json"
    assert config["maxOutputTokens"] == 2_048
    assert config["thinkingConfig"] == {"thinkingLevel": "low"}
    bounds = {"minLength", "maxLength", "minItems", "maxItems", "additionalProperties", "$ref"}
    assert not bounds & {*str(config["responseJsonSchema"]).replace("'", " ").split()}


def test_questions_of_one_model_share_a_connection(
    build: Callable[..., LanguageModel], server: StandIn
) -> None:
    model = build()
    for _ in range(3):
        model.ask(screening())
    assert len({seen.request.client for seen in server.requests}) == 1


def test_a_model_is_asked_from_several_threads_and_each_question_is_paid_once(
    build: Callable[..., LanguageModel], gemini: Gemini
) -> None:
    model = build()
    bad = (GeminiCase.BAD_ENUM, GeminiCase.SAFETY, GeminiCase.OVERLOADED, GeminiCase.DAILY_QUOTA)
    for case in bad:
        gemini.cases.add(case, times=3)

    def ask(_number: int) -> int:
        paid = 0
        for _ in range(8):
            try:
                paid += model.ask(screening()).verdict is Verdict.WORTH
            except ModelBlocked as problem:
                paid += problem.is_paid
            except SourceFailed:
                pass
        return paid

    assert sum(at_once(4, ask)) == gemini.paid.count() == 4 * 8 - 2 * 3


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a case leads to."""

    error: type[SourceFailed]
    why: BlockCause | None = None
    until: datetime | None = None
    maybe_paid: bool | None = None


CASES = {
    GeminiCase.MINUTE_QUOTA: Expected(
        error=RateLimitedUntil, until=NOON + timedelta(seconds=36), maybe_paid=False
    ),
    GeminiCase.DAILY_QUOTA: Expected(error=ModelOutOfQuota, until=MIDNIGHT_PACIFIC),
    GeminiCase.BOTH_QUOTAS: Expected(error=ModelOutOfQuota, until=MIDNIGHT_PACIFIC),
    GeminiCase.QUOTA_WITHOUT_DETAILS: Expected(
        error=RateLimitedUntil, until=NOON + timedelta(seconds=60)
    ),
    GeminiCase.QUOTA_IN_TEXT: Expected(
        error=RateLimitedUntil, until=NOON + timedelta(seconds=36.4)
    ),
    GeminiCase.NOT_IN_PLAN: Expected(error=ModelMisconfigured),
    GeminiCase.CUT_OFF: Expected(error=ModelBlocked, why=BlockCause.CUT_OFF),
    GeminiCase.CUT_OFF_EMPTY: Expected(error=ModelBlocked, why=BlockCause.CUT_OFF),
    GeminiCase.SAFETY: Expected(error=ModelBlocked, why=BlockCause.BLOCKED),
    GeminiCase.RECITATION: Expected(error=ModelBlocked, why=BlockCause.BLOCKED),
    GeminiCase.BLOCKED_PROMPT: Expected(error=ModelBlocked, why=BlockCause.BLOCKED),
    GeminiCase.NO_CANDIDATES: Expected(error=ModelBlocked, why=BlockCause.BLOCKED),
    GeminiCase.BAD_ENUM: Expected(error=ModelBlocked, why=BlockCause.INVALID),
    GeminiCase.INVALID_ARGUMENT: Expected(error=ModelMisconfigured),
    GeminiCase.KEY_SUSPENDED: Expected(error=ModelMisconfigured),
    GeminiCase.SERVER_ERROR: Expected(error=ModelUnavailable, maybe_paid=False),
    GeminiCase.OVERLOADED: Expected(error=ModelUnavailable, maybe_paid=False),
    GeminiCase.BAD_GATEWAY: Expected(error=ModelUnavailable, maybe_paid=True),
    GeminiCase.SLOW: Expected(error=ModelUnavailable, maybe_paid=True),
    GeminiCase.REPLY_LOST: Expected(error=ModelUnavailable, maybe_paid=True),
    GeminiCase.REQUEST_LOST: Expected(error=ModelUnavailable, maybe_paid=True),
}
ANSWERED = {GeminiCase.TEXT_AROUND_JSON}


def test_every_case_of_the_service_has_a_meaning() -> None:
    assert {*CASES} | ANSWERED == {*GeminiCase}


@pytest.mark.parametrize("case", CASES, ids=str)
def test_a_case_leads_to_its_error_with_one_request_and_the_right_count_of_payments(
    server: StandIn, gemini: Gemini, case: GeminiCase
) -> None:
    expected = CASES[case]
    gemini.cases.add(case, seconds=0.6 if case is GeminiCase.SLOW else None)
    # Real time for the slow one, so that the deadline comes.
    is_slow = case is GeminiCase.SLOW
    clock = SystemClock() if is_slow else ManualClock(NOON)
    timeout = 0.3 if is_slow else 60.0
    about = settings("gemini", base_url=server.url, api_key=KEY, timeout=timeout)
    model = build_model(about, name="default", clock=clock)
    with pytest.raises(SourceFailed) as caught:
        model.ask(screening())
    model.close()
    server.stop()  # a request is counted when its answer is over
    problem = caught.value
    assert type(problem) is expected.error
    assert server.count() == 1
    paid = gemini.paid.count()
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


def test_a_day_without_quota_is_probed_an_hour_later(
    build: Callable[..., LanguageModel], gemini: Gemini
) -> None:
    gemini.cases.add(GeminiCase.DAILY_QUOTA)
    with pytest.raises(ModelOutOfQuota) as caught:
        build().ask(screening())
    assert caught.value.probe_at == NOON + timedelta(hours=1)


def test_text_around_the_answer_does_not_spoil_it(
    build: Callable[..., LanguageModel], gemini: Gemini
) -> None:
    gemini.cases.add(GeminiCase.TEXT_AROUND_JSON)
    assert build().ask(screening()).verdict is Verdict.WORTH
    assert gemini.paid.count() == 1


def test_an_answer_longer_than_allowed_is_cut_off(build: Callable[..., LanguageModel]) -> None:
    long_text = "総務省は統計を公表した" * 30 + "。"
    with pytest.raises(ModelBlocked) as caught:
        build(output_tokens_max=64).ask(summary(long_text))
    assert caught.value.why is BlockCause.CUT_OFF
    assert "output_tokens_max" in caught.value.message


def test_a_bare_400_is_the_jobs_until_the_model_has_answered_and_then_the_items(
    build: Callable[..., LanguageModel], gemini: Gemini
) -> None:
    gemini.cases.add(GeminiCase.INVALID_ARGUMENT, times=None, containing="broken")
    model = build()
    with pytest.raises(ModelMisconfigured):
        model.ask(screening("broken"))
    model.ask(screening())
    with pytest.raises(ModelBlocked) as caught:
        model.ask(screening("broken"))
    assert (caught.value.why, caught.value.is_paid) == (BlockCause.REQUEST_REFUSED, False)
    with pytest.raises(ModelBlocked):
        build(has_answered=True).ask(screening("broken"))


def test_a_model_that_refuses_every_text_stops_the_job_after_a_few_items(
    build: Callable[..., LanguageModel], gemini: Gemini
) -> None:
    model = build(has_answered=True)
    gemini.cases.add(GeminiCase.INVALID_ARGUMENT, times=2)
    gemini.cases.add(GeminiCase.INVALID_ARGUMENT, skip=1, times=None)
    kinds: list[type] = []
    for _ in range(6):
        try:
            model.ask(screening())
            kinds.append(Verdict)
        except SourceFailed as problem:
            kinds.append(type(problem))
    item, job = ModelBlocked, ModelMisconfigured
    assert kinds == [item, item, Verdict, item, item, job]


@pytest.mark.parametrize(
    ("options", "hint"),
    [
        ({"api_key": "wrong-key-of-mine"}, "api_key"),
        ({"model": "gemini-2.0-flash"}, "model"),
        ({"model": "models/gemini-2.0-flash"}, "model"),
        ({"model": "../../evil?x=1"}, "model"),
    ],
)
def test_a_wrong_key_or_model_stops_the_job(
    build: Callable[..., LanguageModel], options: dict[str, str], hint: str
) -> None:
    with pytest.raises(ModelMisconfigured) as caught:
        build(has_answered=True, **options).ask(screening())
    assert hint in (caught.value.hint or "")
    assert "wrong-key-of-mine" not in str(caught.value.as_dict())


def test_a_server_that_is_not_there_was_not_paid(
    build: Callable[..., LanguageModel], server: StandIn
) -> None:
    model = build()
    server.stop()
    with pytest.raises(ModelUnavailable) as caught:
        model.ask(screening())
    assert not caught.value.maybe_paid


def test_an_answer_that_comes_byte_by_byte_ends_at_the_deadline(server: StandIn) -> None:
    server.faults.add(StandInFault(kind=StandInFaultKind.DRIP, seconds=0.02))
    about = settings("gemini", base_url=server.url, api_key=KEY, timeout=0.3)
    model = build_model(about, name="default", clock=SystemClock())
    with pytest.raises(ModelUnavailable, match=r"did not respond in time \(0.3 s") as caught:
        model.ask(screening())
    model.close()
    assert caught.value.maybe_paid


@pytest.mark.parametrize(
    "fault",
    [
        StandInFault(kind=StandInFaultKind.HTML, status=200),
        StandInFault(kind=StandInFaultKind.CUT),
        StandInFault(kind=StandInFaultKind.RESET),
        StandInFault(status=200, body="[]"),
        StandInFault(status=200, body="{}"),
        StandInFault(status=200, body='{"candidates": 7}'),
        StandInFault(status=200, body='{"error": {"code": 500}}'),
        StandInFault(status=200, body="[" * 100_000),
    ],
    ids=lambda fault: f"{fault.kind} {fault.body[:20]}",
)
def test_an_answer_that_is_none_of_a_model_is_transient(
    build: Callable[..., LanguageModel], server: StandIn, fault: StandInFault
) -> None:
    server.faults.add(fault)
    with pytest.raises(ModelUnavailable) as caught:
        build().ask(screening())
    assert caught.value.maybe_paid


def test_no_error_or_log_tells_the_key(
    build: Callable[..., LanguageModel], server: StandIn, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    said = f'{{"error": {{"message": "Consumer api_key:{KEY} is suspended"}}}}'
    for fault in (StandInFault(status=403, body=said), StandInFault(kind=StandInFaultKind.RESET)):
        server.faults.add(fault)
        with pytest.raises(SourceFailed) as caught:
            build().ask(screening())
        assert KEY not in "".join(traceback.format_exception(caught.value))
    assert KEY not in caplog.text
