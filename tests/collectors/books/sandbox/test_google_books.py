"""The stand-in for Google Books: its parameters, its bounds, its manners and its errors."""

import json
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlencode
from urllib.request import urlopen

import pytest

from tsuzuki.collectors.books.sandbox.google_books import PATH, GoogleBooks, volume, volumes
from tsuzuki.sandbox.server import StandIn


@pytest.fixture
def books() -> GoogleBooks:
    return GoogleBooks()


@pytest.fixture
def server(books: GoogleBooks) -> Iterator[StandIn]:
    with StandIn(books) as server:
        yield server


def ask(server: StandIn, path: str = PATH, **query: Any) -> Any:
    with urlopen(f"{server.url}{path}?{urlencode({'q': 'python', **query})}") as answer:
        return json.load(answer)


def refused(server: StandIn, path: str = PATH, **query: Any) -> dict[str, Any]:
    with pytest.raises(HTTPError) as caught:
        ask(server, path, **query)
    with caught.value as answer:
        error: dict[str, Any] = json.load(answer)["error"]
    assert error["code"] == caught.value.code
    return error


def test_a_page_has_ten_volumes_unless_said_otherwise(server: StandIn) -> None:
    document = ask(server)
    assert (document["kind"], document["totalItems"]) == ("books#volumes", 150)
    assert [item["id"] for item in document["items"]] == [v["id"] for v in volumes(10)]


def test_start_index_and_max_results_cut_the_list(server: StandIn) -> None:
    items = ask(server, startIndex=120, maxResults=40)["items"]
    assert [item["id"] for item in items] == [v["id"] for v in volumes(30, first=120)]


def test_an_empty_page_has_no_items_at_all(server: StandIn) -> None:
    assert ask(server, startIndex=150) == {"kind": "books#volumes", "totalItems": 150}


@pytest.mark.parametrize(
    "query",
    [
        {"maxResults": 41},
        {"maxResults": -1},
        {"maxResults": "many"},
        {"startIndex": -1},
        {"printType": "comics"},
        {"orderBy": "random"},
        {"q": " "},
    ],
    ids=str,
)
def test_what_is_out_of_bounds_is_refused_in_googles_shape(
    server: StandIn, query: dict[str, Any]
) -> None:
    error = refused(server, **query)
    assert error["code"] == 400
    assert error["errors"][0]["reason"] in ("invalidParameter", "queryRequired")


def test_a_wrong_key_is_refused(server: StandIn, books: GoogleBooks) -> None:
    books.key = "right"
    assert refused(server, key="wrong")["details"][0]["reason"] == "API_KEY_INVALID"
    assert ask(server, key="right")["totalItems"] == 150


def test_the_total_may_wander(server: StandIn, books: GoogleBooks) -> None:
    books.totals = (0, 7, -200)
    assert [ask(server)["totalItems"] for _ in range(4)] == [150, 157, 0, 150]


def test_pages_may_be_short(server: StandIn, books: GoogleBooks) -> None:
    books.page_size_max = 3
    assert len(ask(server, maxResults=40)["items"]) == 3


def test_the_search_and_its_options_choose(server: StandIn, books: GoogleBooks) -> None:
    books.catalogue = [
        volume(1, title="Stars", language="ja", publishedDate="2001"),
        volume(2, title="Whales", printType="MAGAZINE", publishedDate="2003"),
        volume(3, title="Stars again", publishedDate="2002"),
    ]

    def titles(**query: Any) -> list[str]:
        return [item["volumeInfo"]["title"] for item in ask(server, **query).get("items", [])]

    assert titles(q="intitle:stars") == ["Stars", "Stars again"]
    assert titles(q="intitle:again OR whales") == ["Whales", "Stars again"]
    assert titles(q="stars", langRestrict="ja") == ["Stars"]
    assert titles(q="stars OR whales", printType="magazines") == ["Whales"]
    assert titles(q="stars OR whales", orderBy="newest") == ["Whales", "Stars again", "Stars"]


def test_limits_of_a_minute_and_of_a_day_differ_only_in_their_names(
    server: StandIn, books: GoogleBooks
) -> None:
    books.calls_per_minute, books.calls_per_day = 1, 2
    ask(server)
    minute = refused(server)
    books.new_minute()
    ask(server)
    day = refused(server)
    for error, name in ((minute, "PerMinute"), (day, "PerDay")):
        assert error["code"] == 429
        assert error["errors"][0]["reason"] == "rateLimitExceeded"
        assert name in error["details"][0]["metadata"]["quota_limit"]
    books.new_day()
    assert ask(server)["totalItems"] == 150


def test_another_path_is_not_found(server: StandIn) -> None:
    assert refused(server, "/books/v1/shelves")["code"] == 404
