"""Nothing that a model or a feed wrote adds a link, a mention, a hashtag or an invisible character to a post."""

import re
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.collectors.feeds.posting.output_guard import (
    OutputRefused,
    guarded,
    guarded_line,
    guarded_summary,
    is_in_language,
)

INJECTIONS = {
    "Thanks @alice and @bob@evil.example!": "Thanks alice and bob (at) evil[.]example!",
    "\uff20alice \ufe6bbob @@carol": "alice bob carol",
    "@\u2060alice @\u200balice": "alice alice",
    "write to a.b@mail.com": "write to a.b (at) mail[.]com",
    "(@alice) /@alice .@alice": "(alice) /alice . (at) alice",
    "see https://evil.example/x?y=1 now": "see now",
    "HTTP://EVIL.EXAMPLE": "",
    "hthttps://x.com/tps://evil.example": "",
    "http:\u200b//evil.example http:\u00ad//evil.example": "",
    "https:#//evil.example": "",
    "詳細はhttps://evil.example/をご覧": "詳細はをご覧",
    "1https://evil.example": "",
    "gemini://a b ipfs://c": "b",
    "mailto:a@b.c javascript:alert(1)": "",
    "www.evil.jp です": "です",
    "go to evil.com/path, evil.com and 1.2.3.4/x": "go to evil[.]com evil[.]com and",
    "#breaking \uff03タグ ##tag": "breaking タグ tag",
    "C# is No. #5": "C# is No. 5",
    "safe\u202egnp.exe\u2066 \u200f": "safegnp.exe",
    "bell\x07 nul\x00 escape\x1b[31m": "bell nul escape[31m",
    "tag\U000e0041\U000e0042s, \u3164filler\u2800": "tags, filler",
    "a\u2028b\r\nc\td": "a\nb\nc d",
    "<b>bold</b>": "<b>bold</b>",
}


@pytest.mark.parametrize(("text", "left"), INJECTIONS.items())
def test_what_is_more_than_words_is_taken_out(text: str, left: str) -> None:
    assert guarded(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "Node.js 3.14, e.g. in the U.S., costs 5 $ (50 %)",
        "総務省は、令和８年度の予算案を公表した。「重点」は\u3000三つ。",
        "👨‍👩‍👧‍👦 👩🏽‍🚀 ❤️ 🇯🇵",
        "می‌خواهم",
        "क्‍ष",
        "שלום עולם",
        "naïve façade e\u0301".replace("e\u0301", "é"),
        "first paragraph\n\nsecond one",
    ],
)
def test_plain_words_of_any_script_stay_as_they_are(text: str) -> None:
    assert guarded(text) == text


def test_a_letter_keeps_a_few_marks_only() -> None:
    assert len(guarded("Z" + "\u0335" * 1000)) <= 6


@given(
    st.text(
        alphabet=st.sampled_from("ab.:/@#\uff20\uff03 \n\u200b\u200d\u202ehtpsw日。com"),
        max_size=60,
    )
)
def test_whatever_is_put_together_nothing_is_left_to_link(text: str) -> None:
    left = guarded(text)
    assert not re.search(r"[@\uff20]|[#\uff03]\w|://", left)
    kinds = {unicodedata.category(letter) for letter in left if letter not in "\n\u200d"}
    assert not kinds & {"Cf", "Cc"}
    assert guarded(left) == left


def test_a_title_is_one_line() -> None:
    assert guarded_line(" a\n\n b\u2028c ") == "a b c"


@pytest.mark.parametrize(
    ("text", "language", "expected"),
    [
        ("総務省が発表しました。", "ja", True),
        ("5G基地局の開設計画を認定 (NTT Docomo)", "ja", True),
        ("東京都議会議員選挙", "ja", True),
        ("The ministry has announced it.", "ja", False),
        ("总务省今天公布了新的计划\uff0c" * 5, "ja", False),
        ("총무성이 발표했다", "ja", False),
        ("The ministry (総務省) has announced it.", "en", True),
        ("総務省が発表しました。", "en", False),
        ("Le ministère l'a annoncé.", "fr-CA", True),
        ("Министерство объявило", "ru", True),
        ("anything", "tlh", True),
        ("12 % → 15 %", "ja", True),
    ],
)
def test_the_script_tells_a_text_in_another_language(
    text: str, language: str, expected: bool
) -> None:
    assert is_in_language(text, language) is expected


def test_a_summary_in_another_language_is_refused_and_says_so() -> None:
    with pytest.raises(OutputRefused, match=r"not in the requested language \(ja\)"):
        guarded_summary("I cannot help with that.", language="ja")


@pytest.mark.parametrize("text", ["", " \n", "https://evil.example/", "\u200b…"])
def test_a_summary_of_which_nothing_is_left_is_refused(text: str) -> None:
    with pytest.raises(OutputRefused, match="empty"):
        guarded_summary(text, language="en")
