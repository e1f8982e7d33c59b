"""Errors on Japanese pages: every text that a page can show is translated, with its values in their places."""

import re

import pytest
from markupsafe import Markup
from pydantic import BaseModel, Field, ValidationError
from pydantic_core._pydantic_core import list_all_errors

from support.error_texts import page_error_texts
from support.page_checks import ENGLISH_WORDS
from tsuzuki.web.pages.error_texts import error_texts, translated_text
from tsuzuki.web.pages.formats import outside

PLACES = re.compile(r"\{(\d+|rest|word)\}")
CODE = ("tsuzuki ", "git ", "pip ", "--", "Content-Type:", "cron:", "{", "'")
"""How a value of several words starts: it is a line to type, or names in quotes."""
NOT_IN_REQUESTS = {
    *("no_such_attribute", "needs_python_object", "recursion_loop", "recursion_depth_exceeded"),
    *("frozen_field", "frozen_instance", "get_attribute_error", "dataclass_type"),
    *("dataclass_exact_type", "named_tuple_type", "default_factory_not_called", "iterable_type"),
    *("iteration_error", "frozen_dict_type", "ordered_dict_type", "counter_type", "deque_type"),
    *("set_item_not_hashable", "bytes_type", "bytes_too_short", "bytes_too_long"),
    *("bytes_invalid_encoding", "missing_sentinel_error", "ellipsis_error"),
    *("datetime_object_invalid", "is_instance_of", "is_subclass_of", "callable_type"),
    *("arguments_type", "missing_argument", "unexpected_keyword_argument"),
    *("missing_keyword_only_argument", "unexpected_positional_argument"),
    *("missing_positional_only_argument", "multiple_argument_values", "fraction_type"),
    *("fraction_parsing", "complex_type", "complex_str_parsing"),
}
"""Kinds of pydantic's errors that no form and no query can raise."""


TERMS = ENGLISH_WORDS | frozenset(
    "Atom ASCII Agent Cookie Host ID MiB NUL PDF TLS User UTF UUID YAML cron ssh".split()
)


def said_in_japanese(text: str) -> tuple[str | None, list[str]]:
    """The Japanese text, and the values that stand in it as they are."""
    values: list[str] = []

    def show(value: str) -> Markup:
        values.append(value)
        return outside(value)

    return translated_text("ja", text, show), values


def is_prose(value: str) -> bool:
    """Whether a general text has taken English words for its value."""
    return " " in value and not value.startswith(CODE)


def test_every_error_that_a_page_can_show_is_translated() -> None:
    """Give a new text its Japanese in `locale/ja/errors`, or name its module among those that no page shows."""
    missing = {}
    for text, file in page_error_texts().items():
        said, values = said_in_japanese(PLACES.sub(r"v\1", text))
        if said is None or any(map(is_prose, values)):
            missing[text] = file
    assert missing == {}


def test_every_kind_of_invalid_value_is_translated() -> None:
    for kind in list_all_errors():
        if kind["type"] not in NOT_IN_REQUESTS:
            text = re.sub(r"\{\w+\}", "v", kind["message_template_python"])
            said, values = said_in_japanese(f"query.limit: {text}")
            assert said is not None, kind
            assert not any(map(is_prose, values)), (kind, values)


def test_no_translation_of_an_error_is_left_over() -> None:
    texts = [PLACES.sub(r"v\1", text) for text in page_error_texts()]
    texts += [
        re.sub(r"\{\w+\}", "v", kind["message_template_python"]) for kind in list_all_errors()
    ]
    known = [one for one in error_texts("ja") if "rest" not in one.names]
    used = {next((one.text for one in known if one.values(text) is not None), "") for text in texts}
    assert {one.text for one in known} - used == set()


def test_a_translation_has_the_places_of_its_text_and_no_others() -> None:
    for one in error_texts("ja"):
        assert set(one.said_names) <= set(one.names), one.text


def test_a_translation_has_english_words_as_code_or_as_terms_only() -> None:
    for one in error_texts("ja"):
        plain = re.sub(r"<code[^>]*>.*?</code>|&\w+;", "", "{}".join(one.said))
        assert set(re.findall(r"[A-Za-z]{2,}", plain)) <= TERMS, one.text


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("there is no job 'helo'", "ジョブ {'helo'} はありません。"),
        (
            'Did you mean "hello"? See: tsuzuki run ls',
            "「{hello}」ではありませんか？参照：`{tsuzuki run ls}`",
        ),
        ("run 7 has already ended: SUCCEEDED", "実行 {7} はすでに終了しています（成功）。"),
        ("tsuzuki.yaml:3:5: `tags` is missing", "{tsuzuki.yaml:3:5}: `{tags}` がありません。"),
        ("'b' is missing (and 2 more)", "{'b'} がありません。（ほか {2} 件）"),
        (
            "the branch was force-pushed: 1a is no longer on it; what was collected before is kept; "
            "the branch was reset from 2b to 3c, an earlier commit; what was collected before is kept",
            "ブランチが強制的にプッシュされ、{1a} はもう含まれていません。以前に収集したものは残しています。"
            "ブランチが {2b} から以前のコミット {3c} に戻されました。以前に収集したものは残しています",
        ),
        (
            "`tags` must be a list of names, not 7",
            "`{tags}` には次のものを書いてください：名前のリスト（{7} は使えません）",
        ),
        (
            "the payload is not JSON: Expecting value: line 1 column 4 (char 3)",
            "ペイロードは JSON ではありません：値が必要です（{1} 行目、{4} 文字目）",
        ),
        (
            "cannot parse a schedule: there is no time '25:00' on a clock",
            "{a schedule} を読み取れません：{'25:00'} という時刻はありません。",
        ),
    ],
)
def test_values_keep_their_places(text: str, said: str) -> None:
    found = translated_text("ja", text, lambda value: Markup.escape(f"{{{value}}}"))
    assert found is not None
    plain = re.sub(r"</?code[^>]*>", "`", str(found)).replace("&#39;", "'")
    assert plain == said


@pytest.mark.parametrize(
    "text", ["", "disk on fire", "x: disk on fire", "disk on fire (and 2 more)"]
)
def test_a_text_that_is_not_of_ours_stays_english(text: str) -> None:
    assert translated_text("ja", text, outside) is None


def test_an_english_page_keeps_the_english_text() -> None:
    assert translated_text("en", "there is no job 'helo'", outside) is None


def test_markup_in_a_value_is_text() -> None:
    found = translated_text("ja", "there is no job '<b>`x`</b>'", outside)
    assert found is not None
    assert "<b>" not in found
    assert "<code" not in found


def test_a_refused_value_of_a_form_is_told_in_japanese() -> None:
    class Form(BaseModel):
        limit: int = Field(ge=1, le=200)

    said = []
    for given in ("many", "0", "201"):
        with pytest.raises(ValidationError) as refused:
            Form.model_validate({"limit": given})
        said.append(said_in_japanese(refused.value.errors()[0]["msg"])[0])
    assert [re.sub(r"<[^>]+>", "", str(one)) for one in said] == [
        "整数にしてください。",
        "1 以上にしてください。",
        "200 以下にしてください。",
    ]
