"""Languages: every message is translated, no translation is left over, and a header chooses one."""

import ast
import re
from collections import defaultdict
from collections.abc import Callable
from html import unescape
from pathlib import Path
from urllib.parse import urlencode

import pytest

from support.messages import translated, used_messages
from support.web_client import Served
from tsuzuki.web.pages import screens
from tsuzuki.web.pages.language import preferred_language

SCREENS = Path(screens.__file__).parent
PLACES = re.compile(r"%\((\w+)\)s|\{n\}")


def test_every_message_has_a_japanese_translation() -> None:
    known = {text for _, text, said in translated("ja") if said}
    missing = {text: place for text, place in used_messages().items() if text not in known}
    assert missing == {}


def test_no_translation_is_left_over() -> None:
    used = set(used_messages())
    assert [(file, text) for file, text, _ in translated("ja") if text not in used] == []


def test_two_files_say_the_same_about_one_message() -> None:
    said = defaultdict(set)
    for _file, text, translation in translated("ja"):
        said[text].add(str(translation))
    assert {text: found for text, found in said.items() if len(found) > 1} == {}


def test_a_translation_has_the_places_of_its_message() -> None:
    for file, text, translation in translated("ja"):
        for form in translation if isinstance(translation, tuple) else (translation,):
            assert set(PLACES.findall(str(form))) >= set(PLACES.findall(text)), (file, text)


@pytest.mark.parametrize(
    ("header", "language"),
    [
        ("", "en"),
        ("ja", "ja"),
        ("ja-JP,ja;q=0.9,en;q=0.8", "ja"),
        ("fr,en;q=0.5,ja;q=0.4", "en"),
        ("de", "en"),
        ("ja;q=0,en", "en"),
        ("ja;q=often", "en"),
    ],
)
def test_a_browser_gets_the_language_that_it_likes_best(header: str, language: str) -> None:
    assert preferred_language(header) == language


@pytest.fixture(scope="module")
def japanese(site: Served) -> Callable[[str], str]:
    """A page as a Japanese browser gets it, without what is code, a time, or text from elsewhere."""

    def text_of(path: str) -> str:
        page = site.client.as_(None).get(path, Accept_Language="ja").body.decode()
        shown = page[page.index("<main") : page.index('<details class="equivalent"')]
        return re.sub(r"<(code|time|bdi)\b.*?</\1>|<[^>]+>", "", shown)

    return text_of


def test_why_a_run_waits_is_told_in_japanese(japanese: Callable[[str], str]) -> None:
    waiting = japanese("/runs/6")
    for word in ("リーダー", "起動"):
        assert word in waiting
    assert re.findall(r"[A-Za-z]{3,}", waiting.replace("UTC", "")) == []


def test_why_a_job_is_idle_is_told_in_japanese(japanese: Callable[[str], str]) -> None:
    idle = japanese("/jobs/always-fails")
    assert "スケジュール" in idle
    assert "手動" in idle


@pytest.mark.parametrize(
    ("path", "status", "said", "english"),
    [
        ("/runs/999999", 404, "実行 999999 はありません。", "there is no run 999999"),
        ("/jobs/always-fail", 404, "「always-fails」ではありませんか？", "Did you mean"),
        ("/runs?limit=many", 422, "query.limit: 整数にしてください。", "valid integer"),
        ("/runs?stat=FAILED", 422, "パラメーター 'stat' はありません。", "unknown parameter"),
    ],
)
def test_a_page_of_an_error_speaks_japanese_with_the_english_behind_it(
    site: Served, path: str, status: int, said: str, english: str
) -> None:
    answer = site.client.as_(None).get(path, Accept="text/html", Accept_Language="ja")
    main, _, behind = answer.body.decode().partition('<details class="twin">')
    assert answer.status == status
    assert said in unescape(re.sub(r"<[^>]+>", "", main))
    assert english in unescape(re.sub(r"<[^>]+>", "", behind))
    assert english not in main


def test_a_page_of_several_faults_names_each_place_once(site: Served) -> None:
    answer = site.client.as_(None).get("/runs?limit=many&window=soon", Accept="text/html")
    told = re.sub(
        r"<[^>]+>", "", answer.body.decode().partition('<article class="narrow error">')[2]
    )
    faults = told[told.index("(and 1 more)") :].partition("Go to overview")[0]
    assert [faults.count(place) for place in ("query.limit", "query.window")] == [1, 1]


def test_a_refused_form_speaks_japanese(site: Served) -> None:
    headers = {
        "Content-Type": "application/x-www-form-urlencoded",
        "Sec-Fetch-Site": "same-origin",
        "Accept-Language": "ja",
    }
    body = urlencode({"event_type": "order.created", "payload": "{", "form_key": "key"}).encode()
    answer = site.client.as_(None).request("POST", "/events/emit", raw=body, headers=headers)
    text = unescape(re.sub(r"<[^>]+>", "", answer.body.decode()))
    assert answer.status == 422
    assert "ペイロードは JSON ではありません" in text
    assert '{"order": 7} のように書くか、空欄にしてください。' in text


def test_the_message_after_an_action_is_one_that_is_translated() -> None:
    """The text of each `context.redirect(path, text)` is made by `message(…)`."""
    for file in sorted(SCREENS.glob("*.py")):
        tree = ast.parse(file.read_text("utf-8"))
        values = {
            target.id: node.value
            for node in ast.walk(tree)
            if isinstance(node, ast.Assign)
            for target in node.targets
            if isinstance(target, ast.Name)
        }
        for call in ast.walk(tree):
            match call:
                case ast.Call(func=ast.Attribute(attr="redirect"), args=[_, text]):
                    names = [node.id for node in ast.walk(text) if isinstance(node, ast.Name)]
                    sources = [text, *(values[name] for name in names if name in values)]
                    made = {ast.unparse(one) for source in sources for one in ast.walk(source)}
                    assert "message" in made, (file.name, ast.unparse(text))
