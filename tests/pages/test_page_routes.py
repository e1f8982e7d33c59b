"""Routes of pages: rights, sign-in, content policy, files, redirects. Over plain HTTP, without a browser."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import brotli
import pytest
from starlette.requests import HTTPConnection

from support.web_client import (
    RIGHTS,
    SESSION_COOKIE,
    Client,
    FixedAuthenticator,
    HttpAnswer,
    served_application,
)
from tsuzuki.web.pages import screens
from tsuzuki.web.pages.flash import flash_of
from tsuzuki.web.pages.links import PageLink, local_path
from tsuzuki.web.pages.route import FORM_TYPE, PageRoute, TwinRoute
from tsuzuki.web.route import ApiRoute

NUMBER, NAME = "999999", "no-such"
HTML = {"Accept": "text/html"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    folder: Path = tmp_path_factory.mktemp("workspace")
    with served_application(folder) as served:
        yield served.client


def routes() -> list[ApiRoute]:
    found = [route for screen in screens.screens() for route in screen.routes]
    assert all(isinstance(route, PageRoute | TwinRoute) for route in found)
    return [route for route in found if isinstance(route, ApiRoute)]


def path_of(route: ApiRoute) -> str:
    numbered = re.sub(r"\{\w+:int\}", NUMBER, route.path)
    return re.sub(r"\{\w+\}", NAME, numbered)


def test_every_page_answers_each_caller_as_its_right_says(client: Client) -> None:
    for route in routes():
        (method,) = route.methods or ()
        for caller in (None, *FixedAuthenticator.PRINCIPALS):
            headers = {"Content-Type": FORM_TYPE} if method == "POST" else {}
            answer = client.as_(caller).request(method, path_of(route), headers=headers)
            principal = FixedAuthenticator.PRINCIPALS.get(caller or "")
            where = (method, route.path, caller, answer.status, answer.body[-400:])
            if route.right is None:
                assert answer.status not in (403, 500), where
            elif principal is None and isinstance(route, TwinRoute):
                assert answer.status == 401, where
            elif principal is None:
                assert answer.status == 303, where
                assert answer.headers["location"].startswith("/sign-in?next=%2F"), where
            elif not principal.may(RIGHTS[route.right]):
                assert answer.status == 403, where
            else:
                assert answer.status not in (401, 403, 500), where


def test_every_page_has_a_twin() -> None:
    pages = {
        route.path
        for route in routes()
        if isinstance(route, PageRoute) and route.right and route.methods == {"GET"}
    }
    twins = {route.path.removesuffix(".json") for route in routes() if isinstance(route, TwinRoute)}
    assert pages - {"/"} == twins - {"/overview"}


def test_a_page_lets_only_our_own_files_run(client: Client) -> None:
    answer = client.get("/runs", Accept="text/html")
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy
    assert "unsafe" not in policy
    assert answer.headers["x-content-type-options"] == "nosniff"
    assert answer.headers["cache-control"] == "no-store"
    assert not re.search(rb"<[^>]* (style|on\w+)=", answer.body)
    assert not re.search(rb"<script(?! type=\"module\" src=)", answer.body)


def test_files_are_kept_for_good_and_sent_small(client: Client) -> None:
    page = client.get("/runs").body.decode()
    for name in re.findall(r'"(/static/[^"]+)"', page):
        plain = client.as_(None).get(name)
        assert plain.headers["cache-control"] == "public, max-age=31536000, immutable"
        packed = client.as_(None).get(name, Accept_Encoding="gzip, br")
        assert packed.headers["content-encoding"] == "br"
        assert brotli.decompress(packed.body) == plain.body
        assert client.get(name, Accept_Encoding="gzip").headers["content-encoding"] == "gzip"
        same = client.get(name, If_None_Match=plain.headers["etag"])
        assert (same.status, same.body) == (304, b"")
    assert client.get("/static/tsuzuki.js").status == 404


def test_the_script_is_small(client: Client) -> None:
    found = re.search(r'"(/static/tsuzuki[^"]+js)"', client.get("/runs").body.decode())
    assert found
    assert len(client.get(found[1]).body) <= 25_000


def test_a_form_of_another_site_is_refused(client: Client) -> None:
    refused = client.request(
        "POST",
        "/preferences",
        headers={
            "Cookie": f"{SESSION_COOKIE}=admin",
            "Sec-Fetch-Site": "cross-site",
            "Content-Type": FORM_TYPE,
        },
    )
    assert refused.status == 403


def test_a_form_must_be_a_form(client: Client) -> None:
    answer = client.post("/preferences", {"theme": "dark"})
    assert answer.status == 415
    assert b"not_form_type" in answer.body


def test_a_refused_form_is_shown_again_with_what_was_typed(client: Client) -> None:
    refused = post_form(client, "/tokens/new", name="ci <1>", days="ninety")
    page = refused.body.decode()
    assert refused.status == 422
    assert 'action="/tokens/new"' in page
    assert 'value="ci &lt;1&gt;"' in page
    assert "is no number of days" in page


def test_a_refused_question_is_asked_again(client: Client) -> None:
    refused = post_form(client, "/workers/step-down", epoch="7")
    assert refused.status == 409
    assert 'action="/workers/step-down"' in refused.body.decode()
    assert "epoch 7 is over" in refused.body.decode()


def test_a_form_without_its_page_tells_why_it_was_refused(client: Client) -> None:
    assert post_form(client, "/workers/no-such/drain").status == 404


def test_the_form_that_a_page_shows_again_is_no_parameter_of_its_address(client: Client) -> None:
    assert client.get("/tokens/new?form=1").status == 422
    assert client.get("/tokens/new").status == 200


def post_form(client: Client, path: str, **fields: str) -> HttpAnswer:
    body = urlencode(fields).encode()
    headers = {"Content-Type": FORM_TYPE, "Sec-Fetch-Site": "same-origin"}
    return client.request("POST", path, raw=body, headers=headers)


def test_what_is_not_there_is_told_as_a_page_to_a_browser_only(client: Client) -> None:
    assert (
        client.get("/nothing", Accept="text/html").headers["content-type"].startswith("text/html")
    )
    assert client.get("/nothing").code == "no_such_path"
    assert client.get("/api/v1/nothing", Accept="text/html").code == "no_such_path"
    assert client.get(f"/runs/{NUMBER}").status == 404
    assert client.get(f"/runs/{NUMBER}.json").code == "run_unknown"


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("/runs?state=FAILED", "/runs?state=FAILED"),
        ("//evil.example", None),
        ("/\\evil.example", None),
        ("https://evil.example", None),
        ("/runs\r\nSet-Cookie: a=b", None),
        ("javascript:alert(1)", None),
        ("", None),
        (None, None),
    ],
)
def test_a_redirect_stays_here(text: str | None, path: str | None) -> None:
    assert local_path(text) == path


def test_a_filter_changes_and_the_cursor_goes() -> None:
    link = PageLink(path="/runs", parameters=(("job", "a"), ("job", "b"), ("cursor", "c")))
    assert str(link.without("job", "a")) == "/runs?job=b"
    assert str(link.without("job")) == "/runs"
    assert str(link.swapping("job", "a", "exclude_job")) == "/runs?job=b&exclude_job=a"
    assert str(link.setting("job", "d e")) == "/runs?job=d+e"
    assert str(link.at_cursor("x")) == "/runs?job=a&job=b&cursor=x"
    assert link.command("run ls", {"job": "--job"}) == "tsuzuki run ls --job a --job b"


def test_a_flash_of_another_origin_is_not_shown(client: Client) -> None:
    forged = "bm90LW91cnMtbm90LW91cnNbImhpIix7fV0="
    page = client.get("/runs", Cookie=f"__Host-tsuzuki-flash={forged}")
    assert page.status == 200
    assert b'id="flash"' not in page.body


def test_a_page_without_a_message_asks_the_database_for_no_key() -> None:
    request = HTTPConnection({"type": "http", "headers": [(b"cookie", b"other=1")]})
    assert flash_of(request, lambda: pytest.fail("the database cannot be reached")) is None


def test_preferences_that_make_no_sense_are_left_alone(client: Client) -> None:
    for cookie in (
        "theme=pink&zone=Mars&language=xx",
        "%%%",
        "a" * 5000,
        "language=ja&zone=../etc",
    ):
        page = client.get("/runs", Cookie=f"__Host-tsuzuki-preferences={cookie}")
        assert page.status == 200, cookie


def test_live_viewers_share_a_rendering_and_only_those_with_the_same_rights(client: Client) -> None:
    live = {"Tsuzuki_Fragment": "main"}
    first, second = (client.get("/runs?limit=7", **live) for _ in range(2))
    assert b"<main" in first.body
    assert b'<nav class="menu-list"' not in first.body
    assert first.body == second.body
    assert second.headers["tsuzuki-age-ms"].isdigit()
    assert b"Retry all" not in client.as_("viewer").get("/runs?limit=7", **live).body
    assert "tsuzuki-age-ms" not in client.get("/runs?limit=7").headers
    assert "tsuzuki-age-ms" not in client.get("/preferences", **live).headers
