"""Signing in, the first admin, preferences, and pages of errors."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect

from support.page_checks import Layouts, Visitor, check_page, stray_english, visitor
from support.web_client import Served, served_application
from tsuzuki.model.access import OwnerMode, Role

PASSWORD = "correct-horse-battery"


@pytest.fixture
def new_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Without users yet."""
    with served_application(tmp_path_factory.mktemp("workspace"), fixed=False) as served:
        yield served


def test_the_first_admin_is_made_signs_out_and_in_again(
    chromium: Browser, new_site: Served
) -> None:
    code = new_site.application.setup_codes.create(actor="test").text
    with visitor(chromium, new_site.client.url, language="ja") as person:
        page = person.open("/setup")
        check_page(page)
        assert (found := stray_english(page)) == [], found
        page.locator("[name=code]").fill(code)
        page.locator("[name=name]").fill("ada")
        page.locator("[name=password]").fill(PASSWORD)
        page.locator("button[type=submit]").click()
        expect(page).to_have_url(re.compile(r"/(runs)?$"))
        page.get_by_role("button", name="サインアウト").click()
        expect(page).to_have_url(re.compile(r"/sign-in$"))
        check_page(page)
        assert (found := stray_english(page)) == [], found
        page.goto(person.url + "/runs?state=FAILED")
        expect(page).to_have_url(re.compile(r"/sign-in\?next="))
        page.locator("[name=name]").fill("ada")
        page.locator("[name=password]").fill(PASSWORD)
        page.keyboard.press("Enter")
        expect(page).to_have_url(re.compile(r"/runs\?state=FAILED$"))


def test_the_first_user_is_an_admin_unless_said(new_site: Served) -> None:
    form = new_site.client.as_(None).get("/users").body.decode()
    assert 'value="admin" selected' in form


def test_an_unknown_address_keeps_the_menu_of_those_who_may_see_it(new_site: Served) -> None:
    client, application = new_site.client.as_(None), new_site.application
    assert "menu-list" in client.get("/runz", Accept="text/html").body.decode()
    application.users.add("ada", PASSWORD, role=Role.ADMIN, by=application.principal)
    refused = client.get("/runz", Accept="text/html")
    assert refused.status == 404
    assert "menu-list" not in refused.body.decode()


def test_a_wrong_password_keeps_the_name_and_the_way_back(
    chromium: Browser, new_site: Served
) -> None:
    application = new_site.application
    application.users.add("ada", PASSWORD, role=Role.ADMIN, by=application.principal)
    with visitor(chromium, new_site.client.url, javascript=False) as person:
        page = person.open("/runs/7")
        page.locator("[name=name]").fill("ada")
        page.locator("[name=password]").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_role("alert")).to_have_text("Wrong name or password.")
        expect(page.locator("[name=name]")).to_have_value("ada")
        expect(page.locator("[name=next]")).to_have_value("/runs/7")
        person.faults.clear()  # the browser reports the 401


def test_preferences_are_kept_and_act_at_once(person: Visitor) -> None:
    page = person.open("/preferences")
    page.get_by_label("Language").select_option("ja")
    page.get_by_label("Theme").select_option("dark")
    page.get_by_label("Time zone").select_option("Asia/Tokyo")
    page.get_by_label("Single-key shortcuts").uncheck()
    page.get_by_role("button", name="Save").click()
    expect(page.locator("html")).to_have_attribute("lang", "ja")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    assert page.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    expect(page.locator(".clock")).to_contain_text("JST")
    page.goto(person.url + "/runs")
    page.keyboard.press("j")
    expect(page.locator("tr[data-focus]")).to_have_count(0)


@pytest.mark.parametrize("path", ["/preferences", "/bulk", "/go?q=nightly"])
def test_each_page_is_held_to_the_rules(layouts: Layouts, path: str) -> None:
    layouts.check(path)


def test_an_error_is_a_page_with_the_next_step(chromium: Browser, site: Served) -> None:
    with visitor(chromium, site.client.url, language="ja", theme="dark") as person:
        page = person.open("/runs/999999", status=404)
        check_page(page)
        assert (found := stray_english(page)) == [], found
        expect(page.locator("code").first).to_have_text("run_unknown")


@pytest.fixture
def linked_site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Without users; its owner signs in by a link."""
    folder = tmp_path_factory.mktemp("workspace")
    with served_application(folder, fixed=False, owner_mode=OwnerMode.LINK) as served:
        yield served


def link_of(site: Served) -> str:
    return f"/sign-in/link?token={site.application.owner_links.create(actor='test').secret}"


@pytest.mark.parametrize("javascript", [True, False])
def test_a_link_signs_the_owner_in_and_leaves_the_address(
    chromium: Browser, linked_site: Served, javascript: bool
) -> None:
    with visitor(chromium, linked_site.client.url, javascript=javascript) as person:
        page = person.open(link_of(linked_site))
        if not javascript:
            page.get_by_role("button", name="Sign in").click()
        expect(page).to_have_url(f"{person.url}/")
        page.goto(f"{person.url}/runs")
        expect(page).to_have_url(f"{person.url}/runs")
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_text("tsuzuki web link")).to_be_visible()


def test_a_link_that_was_opened_before_is_refused_with_what_to_do(
    chromium: Browser, linked_site: Served
) -> None:
    link, url = link_of(linked_site), linked_site.client.url
    with visitor(chromium, url) as first:
        for _ in range(2):
            expect(first.open(link)).to_have_url(f"{url}/")
    with visitor(chromium, url, language="ja") as second:
        page = second.open(link)
        expect(page.get_by_role("alert")).to_be_visible()
        check_page(page)
        assert (found := stray_english(page)) == [], found
        second.faults.clear()  # the browser reports the 401


def test_the_page_of_an_owner_who_is_not_signed_in_is_held_to_the_rules(
    linked_site: Served, chromium: Browser
) -> None:
    for language, theme in (("en", "light"), ("ja", "dark")):
        with visitor(chromium, linked_site.client.url, language=language, theme=theme) as person:
            page = person.open("/runs", status=401)
            check_page(page)
            if language == "ja":
                assert (found := stray_english(page)) == [], found
            expect(page.get_by_text("tsuzuki web link")).to_be_visible()
            person.faults.clear()  # the browser reports the 401
