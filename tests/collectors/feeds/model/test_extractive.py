"""Without a model: the first sentences, in Japanese and English, within the length."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.collectors.feeds.model.extractive import ExtractiveModel
from tsuzuki.collectors.feeds.model.protocol import Verdict
from tsuzuki.collectors.feeds.model.sentences import first_sentences, sentences, shortened

from .model_fixture import TITLE, screening, summary

MODEL = ExtractiveModel(name="default")
FAMILY = "👨‍👩‍👧"


def test_an_article_with_a_text_is_worth_a_post_and_costs_nothing() -> None:
    answer = MODEL.ask(screening())
    assert (answer.verdict, answer.usage.tokens, answer.usage.cost_micros) == (Verdict.WORTH, 0, 0)


@pytest.mark.parametrize("text", ["", " \n\t "])
def test_a_page_without_a_text_is_not_ready_and_its_summary_is_the_title(text: str) -> None:
    assert MODEL.ask(screening(text)).verdict is Verdict.NOT_READY
    assert MODEL.ask(summary(text)).text == TITLE
    assert len(MODEL.ask(summary(text, summary_characters=20)).text or "") <= 20


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "総務省は公表した。対象は全国である。終わり",
            ["総務省は公表した。", "対象は全国である。", "終わり"],
        ),
        (
            "「行く。」と言った\uff01本当か\uff1fはい。",
            ["「行く。」", "と言った\uff01", "本当か\uff1f", "はい。"],
        ),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("Mr. Sato paid 3.5 million. It ended.", ["Mr. Sato paid 3.5 million.", "It ended."]),
        ("The U.S. agreed, e.g. on tax. Yes.", ["The U.S. agreed, e.g. on tax.", "Yes."]),
        ('He said "no." Then left.', ['He said "no."', "Then left."]),
        ("A heading\n\nThe  text\tgoes on. End.", ["A heading", "The text goes on.", "End."]),
        ("See example.org/a.b for more.", ["See example.org/a.b for more."]),
        ("", []),
    ],
)
def test_sentences_are_found(text: str, expected: list[str]) -> None:
    assert list(sentences(text)) == expected


def test_whole_sentences_are_taken_as_long_as_they_fit() -> None:
    assert first_sentences("一つ目。二つ目。三つ目。", characters_max=8) == "一つ目。二つ目。"
    assert first_sentences("One is. Two is. Three.", characters_max=16) == "One is. Two is."


def test_the_title_that_a_page_repeats_is_left_out() -> None:
    text = f"{TITLE}\n総務省は公表した。"
    assert MODEL.ask(summary(text)).text == "総務省は公表した。"


def test_a_first_sentence_that_is_too_long_is_shortened_between_words() -> None:
    text = "The ministry of internal affairs published the figures of the year."
    assert first_sentences(text, characters_max=30) == "The ministry of internal…"
    assert first_sentences("総務省は統計を公表した" * 3, characters_max=8) == "総務省は統計を…"


@pytest.mark.parametrize("size", range(1, 30))
def test_no_visible_character_is_divided(size: int) -> None:
    for character in (FAMILY, "🇯🇵", "👍🏽", "が", "e\u0301"):
        kept = shortened(character * 8, size).removesuffix("…")
        assert len(kept) % len(character) == 0
        assert kept == character * (len(kept) // len(character))


@given(st.text(max_size=400), st.integers(min_value=20, max_value=60))
def test_a_summary_is_never_longer_than_allowed_and_on_one_line(text: str, size: int) -> None:
    said = first_sentences(text, characters_max=size)
    assert len(said) <= size
    assert said.splitlines() == ([said] if said else [])
    assert said or not text.strip() or all(unicodedata.category(c)[0] in "ZC" for c in text)
