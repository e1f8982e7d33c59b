"""The code index: how it is, search on each key, source with an address per line, references, outline, builds."""

import html
import json
import re
import shlex
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from support.code_site import code_site
from support.page_checks import Layouts, Visitor, check_twin
from support.web_client import Served
from tsuzuki.web.pages.route import FORM_TYPE


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with code_site(tmp_path_factory.mktemp("workspace")) as served:
        yield served


@pytest.mark.parametrize("path", ["/index", "/index/search?text=total", "/index/map?focus=total"])
def test_each_page_of_the_code_index_is_held_to_the_rules(layouts: Layouts, path: str) -> None:
    layouts.check(path)


def test_files_are_counted_by_outcome_and_language_and_listed(person: Visitor) -> None:
    page = person.open("/index")
    links = page.locator(".funnel ol a").all()
    assert len(links) >= 4
    for link in links:
        listed = check_twin(person, str(link.get_attribute("href")))
        assert len(listed["files"]) == int(re.findall(r"\d+", link.inner_text())[-1])


def test_results_follow_each_key_and_are_opened_by_keys(person: Visitor) -> None:
    page = person.open("/index/search")
    page.get_by_role("searchbox", name="Search code").press_sequentially("tota")
    expect(page.locator("#found tbody tr").first).to_contain_text("total")
    expect(page).to_have_url(re.compile(r"search\?text=tota$"))
    expect(page.locator("#preview .marked")).to_contain_text("def total(prices):")
    page.locator("#found a", has_text="total is a sum").first.click()
    expect(page.locator("#preview .marked")).to_contain_text("total is a sum")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(r"show=shop%2Fsums.py%3A1#preview$"))


def test_a_line_has_an_address_and_a_symbol_its_references(person: Visitor) -> None:
    page = person.open("/index/read?name=shop/sums.py:total")
    expect(page.locator("#L1")).to_contain_text("def total")
    page.locator("#L1 a").click()
    expect(page).to_have_url(re.compile(r"#L1$"))
    page.get_by_role("link", name="References", exact=True).click()
    expect(page.locator("main")).to_contain_text("shop/test_sums.py:5")
    page.get_by_role("link", name="Exclude tests").click()
    expect(page.locator("main table")).not_to_contain_text("test_sums")
    page = person.open("/index/outline?path=shop/sums.py")
    expect(page.locator(".depth-1")).to_contain_text("tax")


def test_the_map_is_the_answer_of_the_service_and_takes_a_focus(
    person: Visitor, site: Served
) -> None:
    page = person.open("/index")
    page.get_by_role("link", name="Map", exact=True).click()
    client = site.client.as_(None)
    assert check_twin(person, "/index/map")["map"]["items"] == client.get("code/map").json["items"]
    expect(page.locator("#map tbody tr").first).to_contain_text("def total(prices)")
    page.get_by_role("searchbox", name="Focus").fill("tax")
    page.get_by_role("button", name="Focus").click()
    expect(page.locator(".chip")).to_contain_text("tax")
    narrowed = client.get("code/map?focus=tax").json["items"]
    assert check_twin(person, "/index/map?focus=tax")["map"]["items"] == narrowed
    expect(page.locator(".equivalent code").first).to_have_text("tsuzuki index map --focus tax")


@pytest.mark.parametrize(
    ("page", "query", "command"),
    [
        (
            "search",
            "text=a+b&where=text&regex=true&ignore_case=true&limit=9",
            "search --root TREE 'a b' --in text --regex --ignore-case --limit 9",
        ),
        ("read", "name=shop%2Fsums.py&lines=1-2", "read --root TREE shop/sums.py --lines 1-2"),
        (
            "references",
            "name=total&tests=false&exact=true",
            "references --root TREE total --no-tests --exact",
        ),
        ("outline", "path=shop&depth=2", "outline --root TREE shop --depth 2"),
        ("files", "outcome=indexed", "status TREE"),
    ],
)
def test_the_command_asks_for_what_the_page_shows(
    site: Served, page: str, query: str, command: str
) -> None:
    client = site.client.as_(None)
    (tree,) = client.get("code/trees").json["items"]
    text = client.get(f"/index/{page}?{urlencode({'tree': tree['tree']})}&{query}").body.decode()
    shown = text[text.index('<details class="equivalent"') :]
    line = html.unescape(re.findall(r'data-copy="([^"]*)"', shown)[0])
    assert line == f"tsuzuki index {command.replace('TREE', shlex.quote(tree['tree']))}"


def test_a_question_without_an_answer_is_told(person: Visitor) -> None:
    page = person.open("/index/search?text=%28&regex=true")
    expect(page.get_by_role("alert")).to_be_visible()
    page = person.open("/index/read?name=../private.py")
    expect(page.get_by_role("alert")).to_be_visible()


def test_names_and_lines_of_files_do_no_harm(person: Visitor) -> None:
    for path in ("/index/search?text=hostile_name", "/index/outline", "/index/files", "/index/map"):
        page = person.open(path)
        expect(page.locator("main")).to_contain_text("<img src=x onerror=alert(1)>.py")
        assert page.locator("main img").count() == 0
        assert "<img src=x" in json.dumps(check_twin(person, path))


def test_a_build_is_started_and_the_index_removed(person: Visitor, site: Served) -> None:
    page = person.open("/index")
    page.get_by_role("link", name="Build …").click()
    dialog = page.get_by_role("dialog", name="Confirm")
    expect(dialog).to_contain_text("6 files")
    dialog.get_by_role("button", name="Build").click()
    expect(page.locator("#flash")).to_have_text("Building the index …")
    (tree,) = site.client.as_(None).get("/index.json").json["trees"]
    assert site.application.audit.find(limit=1)[0].object_id == tree["tree"]
    headers = {"Content-Type": FORM_TYPE, "Origin": site.client.url}
    refused = site.client.as_(None).request(
        "POST", "/index/remove", raw=b"tree=/etc", headers=headers
    )
    assert refused.status == 404
