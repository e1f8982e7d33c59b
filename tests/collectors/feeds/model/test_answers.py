"""Answers: only what obeys the schema counts."""

import pytest

from tsuzuki.collectors.feeds.model.answers import checked_answer
from tsuzuki.collectors.feeds.model.protocol import (
    RAW_CHARACTERS_MAX,
    BlockCause,
    ModelBlocked,
    Usage,
    Verdict,
)

from .model_fixture import screening, summary

USAGE = Usage(input_tokens=10, output_tokens=5, cost_micros=3)


@pytest.mark.parametrize(
    "raw",
    [
        '{"verdict": "worth", "reason": "news"}',
        '\n```json\n{"verdict": "worth", "reason": " news "}\n```\n',
        'Here it is: {"verdict": "worth", "reason": "news", "more": {"a": [1]}} Done.',
    ],
)
def test_a_verdict_is_read(raw: str) -> None:
    answer = checked_answer(screening(), raw, USAGE, model_name="m")
    assert (answer.verdict, answer.why, answer.usage) == (Verdict.WORTH, "news", USAGE)


def test_a_reason_is_not_needed() -> None:
    answer = checked_answer(screening(), '{"verdict": "not_ready"}', USAGE, model_name="m")
    assert (answer.verdict, answer.why) == (Verdict.NOT_READY, None)


@pytest.mark.parametrize("said", ["総務省は統計を公表した。", "The ministry said: “yes”. {sic}"])
def test_a_summary_is_read_in_any_language(said: str) -> None:
    raw = f'{{"summary": " {said} "}}'
    assert checked_answer(summary(), raw, USAGE, model_name="m").text == said


@pytest.mark.parametrize(
    "raw",
    [
        "",
        "  \n",
        "worth",
        "null",
        "[]",
        '[{"verdict": "worth"}]',
        '{"verdict": "worth"',
        '{"verdict": "perhaps"}',
        '{"verdict": "WORTH"}',
        '{"verdict": null}',
        '{"verdict": ["worth"]}',
        '{"reason": "worth"}',
        '{"verdict": "not_worth"} {"verdict": "worth"}',
        '{"verdict"' * 50_000,
    ],
)
def test_any_other_verdict_is_not_guessed_at(raw: str) -> None:
    with pytest.raises(ModelBlocked) as caught:
        checked_answer(screening(), raw, USAGE, model_name="m")
    problem = caught.value
    assert (problem.why, problem.usage, problem.is_paid) == (BlockCause.INVALID, USAGE, True)
    assert problem.raw == raw[:RAW_CHARACTERS_MAX]
    assert problem.specific_code == "model_invalid"


@pytest.mark.parametrize("raw", ['{"summary": ""}', '{"summary": " "}', '{"summary": 7}', "{}"])
def test_an_empty_summary_is_none(raw: str) -> None:
    with pytest.raises(ModelBlocked):
        checked_answer(summary(), raw, USAGE, model_name="m")
