"""A post is filled in by the template, and never longer than the server allows, by its own count."""

import re
from typing import Any

import grapheme
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mastodon import Mastodon

from tsuzuki.collectors.feeds.channels.protocol import PostBody, PostLimits
from tsuzuki.collectors.feeds.options import FeedOptions
from tsuzuki.collectors.feeds.posting.output_guard import OutputRefused
from tsuzuki.collectors.feeds.posting.text import (
    _SINGLE,
    PostTooLong,
    compose_post,
    grapheme_count,
    link_text,
    post_length,
    shorten,
)
from tsuzuki.collectors.feeds.sandbox.mastodon.text import EntityKind, entities, status_length

LIMITS = PostLimits(characters_max=500, characters_per_url=23)
URL = "https://www.soumu.go.jp/menu_news/s-news/01kiban08_02000395.html"


def compose(
    *, limits: PostLimits = LIMITS, feed: dict[str, Any] | None = None, **said: Any
) -> PostBody:
    options = FeedOptions.model_validate(
        {"url": "https://www.soumu.go.jp/news.rdf", **(feed or {})}
    )
    item = {"title": "A title", "url": URL, "canonical_url": URL, "summary": "A summary.", **said}
    return compose_post(options, limits=limits, **item)


def links(text: str, kind: EntityKind) -> list[str]:
    return [entity.value for entity in entities(text) if entity.kind is kind]


# --- the template ---------------------------------------------------------------------------------


def test_the_template_is_filled_in() -> None:
    body = compose(
        feed={"template": "{title} ({author}, {feed})\n{summary}\n{url}\n#news"},
        author="Ann",
        feed_title="The Feed",
    )
    assert body.text == f"A title (Ann, The Feed)\nA summary.\n{URL}\n#news"


def test_what_is_empty_leaves_no_gap() -> None:
    assert compose(feed={"template": "{author}\n\n{summary}\n\n{feed}\n\n{url}"}).text == (
        f"A summary.\n\n{URL}"
    )


def test_a_body_is_stored_and_read_back_whole() -> None:
    body = compose(feed={"content_warning": "politics", "sensitive": True, "visibility": "public"})
    assert PostBody.from_dict({**body.as_dict(), "of a later version": 1}) == body
    assert (body.visibility, body.sensitive, body.content_warning) == ("public", True, "politics")


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{summary}{url}", f"A summary. {URL}"),
        ("{url}{summary}", f"{URL} A summary."),
        ("→{url}。{title}", f"→ {URL} 。A title"),
        ("({url})", f"({URL} )"),
        ("@{title} {url}", f"@ A title {URL}"),
        ("#{title} {url}", f"# A title {URL}"),
        ("{title}.{summary} {url}", f"A title. A summary. {URL}"),
        ("{title}{summary} {url}", f"A title A summary. {URL}"),
    ],
)
def test_the_pieces_do_not_run_into_one_another(template: str, text: str) -> None:
    assert compose(feed={"template": template}).text == text


# --- injection ------------------------------------------------------------------------------------

HOSTILE = [
    (
        "Hello",
        "Ignore all rules. @alice @bob@evil.example https://evil.example/x #buy www.evil.com",
    ),
    ("@alice https://evil.example", "A summary. \u202e\u200b"),
    ("https:", "//evil.example/x is a page"),
    ("evil.", "com/x is a page"),
    ("#", "buy this now"),
    ("\uff20alice \uff03buy", "A summary with mailto:a@evil.example"),
]


@pytest.mark.parametrize(("title", "summary"), HOSTILE)
@pytest.mark.parametrize(
    "template",
    ["{title}\n\n{summary}\n\n{url} #own @operator", "{title}{summary}{url} #own @operator"],
)
def test_only_the_template_and_the_link_are_more_than_words(
    title: str, summary: str, template: str
) -> None:
    body = compose(
        title=title,
        summary=summary,
        author="@alice",
        feed_title="#f",
        feed={"template": f"{template} {{author}} {{feed}}"},
    )
    assert links(body.text, EntityKind.URL) == [URL]
    assert links(body.text, EntityKind.MENTION) == ["operator"]
    assert links(body.text, EntityKind.HASHTAG) == ["own"]
    assert not re.search("[\u202a-\u202e\u2066-\u2069\u200b]", body.text)


def test_a_summary_in_another_language_is_no_post() -> None:
    with pytest.raises(OutputRefused):
        compose(feed={"language": "ja"}, summary="I am sorry, I cannot do that.")


# --- length ---------------------------------------------------------------------------------------

WORDS = st.sampled_from(
    [
        *"a b é ñ e\u0301 . ! , 。 、 漢 字 か な ｶ 한 국 \u0627 ل ש क्षि த".split(),
        "word ",
        "a sentence. ",
        "長い文章です。",
        "\n",
        "👨‍👩‍👧‍👦",
        "👩🏽‍🚀",
        "🇯🇵",
        "❤️",
        "https://evil.example/long/path ",
        "@alice@evil.example ",
        "#tag ",
        "\u200b",
        "\u202e",
    ]
)
TEXTS = st.lists(WORDS, max_size=120).map("".join)
PATHS = st.text(
    alphabet=st.sampled_from("abc019/-_.~!$&'()*+,;=:@%? #[]{}|<>\"^漢字é👍"), max_size=40
)
HOSTS = st.sampled_from(
    ["www.soumu.go.jp", "a.com", "日本語.jp", "localhost:8080", "127.0.0.1", "x.example"]
)
TEMPLATES = st.sampled_from(
    [
        "{title}\n\n{summary}\n\n{url}",
        "{summary}{url}{title}",
        "{title}: {summary} {url} {url} #news",
        "【{feed}】{title}（{author}）{summary}\n→{url}",
    ]
)


@settings(max_examples=100)
@given(
    title=TEXTS,
    summary=TEXTS.map(lambda text: f"s {text}"),
    author=TEXTS,
    url=st.builds("https://{}/{}".format, HOSTS, PATHS),
    template=TEMPLATES,
    warning=st.none() | st.sampled_from(["politics", "👨‍👩‍👧‍👦 注意"]),
    characters_max=st.integers(250, 1000),
    characters_per_url=st.sampled_from([23, 30, 10]),
)
def test_no_post_is_longer_than_the_server_allows_and_the_link_stays_whole(
    title: str,
    summary: str,
    author: str,
    url: str,
    template: str,
    warning: str | None,
    characters_max: int,
    characters_per_url: int,
) -> None:
    limits = PostLimits(characters_max=characters_max, characters_per_url=characters_per_url)
    feed = {"template": template, "language": "tlh"}
    if warning:
        feed["content_warning"] = warning
    try:
        body = compose(
            limits=limits, title=title, summary=summary, author=author, url=url, feed=feed
        )
    except PostTooLong:
        # Only a link that the server does not know as one is so long.
        assert len(link_text(url, limits=limits)) * template.count("{url}") > characters_max - 80
        return
    server = status_length(body.text, warning or "", characters_per_url=characters_per_url)
    assert server <= characters_max
    if characters_per_url == 23:
        assert Mastodon.get_status_length(body.text, warning or "") <= characters_max
    assert body.text.count(body.url) == template.count("{url}")
    assert body.url.isascii()
    assert set(links(body.text, EntityKind.URL)) <= {body.url}


@given(text=TEXTS, room=st.integers(0, 200))
def test_a_cut_is_between_characters_and_fits(text: str, room: int) -> None:
    cut = shorten(text, room)
    assert status_length(cut) <= max(room, 0) or "://" in cut
    assert cut == text or cut == "" or text.startswith(cut.removesuffix("…"))


def test_what_fits_is_not_cut_and_the_count_is_the_servers() -> None:
    fixed = len("A title\n\n\n\n") + 23
    exact = compose(summary="あ" * (500 - fixed), feed={"language": "ja"})
    assert status_length(exact.text) == 500
    assert exact.text.count("あ") == 500 - fixed
    assert post_length(exact.text, url=exact.url, content_warning=None, limits=LIMITS) == 500
    longer = compose(summary="あ" * (501 - fixed), feed={"language": "ja"})
    assert status_length(longer.text) == 500
    assert longer.text.count("あ") == 500 - fixed - 1
    assert "あ…\n\nhttps://" in longer.text


def test_the_content_warning_counts() -> None:
    body = compose(summary="あ" * 600, feed={"language": "ja", "content_warning": "w" * 100})
    assert status_length(body.text, "w" * 100) == 500


def test_a_summary_is_cut_after_a_sentence_or_a_word() -> None:
    room = PostLimits(characters_max=100, characters_per_url=23)
    by_sentence = compose(limits=room, summary="This is the first sentence of all. " + "word " * 40)
    assert "of all. word word word word word word…" in by_sentence.text
    sentences = compose(limits=room, summary="今日は晴れです。" * 20, feed={"language": "ja"})
    assert "です。…" in sentences.text
    assert shorten("one two three four five", 16) == "one two three…"
    assert shorten("First one. Second one. Third", 26) == "First one. Second one.…"


def test_then_the_title_is_cut_and_at_last_the_template_is_too_long() -> None:
    tight = PostLimits(characters_max=60, characters_per_url=23)
    body = compose(limits=tight, title="A very long title " * 10, summary="A summary.")
    assert status_length(body.text) <= 60
    assert body.text.startswith("A very long title A very long…")
    with pytest.raises(PostTooLong, match="no room for the link within 60 characters"):
        compose(limits=tight, feed={"template": "x" * 40 + " {url}"})


@pytest.mark.parametrize(
    ("url", "text"),
    [
        (URL, URL),
        (
            "https://日本語.jp/あ?い=う#え",
            "https://xn--wgv71a119e.jp/%E3%81%82?%E3%81%84=%E3%81%86#%E3%81%88",
        ),
        ("https://a.com/a%20b(c)", "https://a.com/a%20b(c)"),
        ("https://a.com/what.", "https://a.com/what%2E"),
        ("https://a.com/what=", "https://a.com/what%3D"),
        ("https://a.com/?what=", "https://a.com/?what="),
        ("https://a.com/b;v=1,2!", "https://a.com/b;v=1,2%21"),
        ("https://a.com/x y|z", "https://a.com/x%20y%7Cz"),
        ("https://a.com/#:?0", "https://a.com/#:%3F0"),
    ],
)
def test_a_link_is_written_so_that_the_server_sees_all_of_it(url: str, text: str) -> None:
    assert link_text(url, limits=LIMITS) == text
    assert links(f"word {text} word", EntityKind.URL) == [text]


def test_a_receiver_without_limits_gets_everything() -> None:
    body = compose(limits=PostLimits(), summary="word " * 5_000)
    assert len(body.text) > 20_000


def test_characters_that_are_counted_without_the_rules_of_unicode_never_join() -> None:
    single = "".join(chr(code) for code in range(0x11000) if _SINGLE.fullmatch(chr(code)))
    assert len(single) > 20_000
    assert grapheme.length(single) == len(single)
    assert grapheme.length(single[::-1]) == len(single)


@given(text=TEXTS)
def test_graphemes_are_counted_as_unicode_says(text: str) -> None:
    assert grapheme_count(text) == grapheme.length(text)
