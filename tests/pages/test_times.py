"""Times on pages: in the zone of the reader, and in words for how long ago."""

import re
from datetime import timedelta

import pytest
from playwright.sync_api import Browser, expect

from support.page_checks import visitor
from support.web_client import Served
from tsuzuki.web.pages.formats import relative

MOMENT = re.compile(r"^20\d\d-\d\d-\d\d \d\d:\d\d:\d\d (\S+)$")


def test_times_are_in_the_zone_of_the_browser_with_utc_beside(
    chromium: Browser, site: Served
) -> None:
    with visitor(chromium, site.client.url, zone="Asia/Tokyo") as person:
        page = person.open("/runs/1")
        due = page.locator("#facts time").first
        expect(due).to_have_text(re.compile(r" JST$"))
        expect(due).to_have_attribute("title", re.compile(r" UTC$"))
        page.goto(f"{person.url}/preferences")
        page.get_by_label("Time zone").select_option("Europe/Berlin")
        page.get_by_role("button", name=re.compile("Keep|Save")).click()
        page.goto(f"{person.url}/runs/1")
        expect(due).to_have_text(re.compile(r" CES?T$"))
        expect(due).to_have_attribute("title", re.compile(r"JST \(Asia/Tokyo\)"))


def test_the_twin_of_a_page_stays_in_utc(chromium: Browser, site: Served) -> None:
    with visitor(chromium, site.client.url, zone="Asia/Tokyo") as person:
        person.open("/runs/1")
        answer = person.context.request.get(f"{person.url}/runs/1.json").json()
        assert answer["run"]["created_at"].endswith("Z")


def test_a_zone_that_nobody_knows_is_ignored(chromium: Browser, site: Served) -> None:
    with visitor(chromium, site.client.url) as person:
        cookie = {"name": "__Host-tsuzuki-zone", "value": "Mars%2FOlympus", "secure": True}
        person.context.add_cookies([{**cookie, "url": person.url.replace("http:", "https:")}])
        expect(person.open("/runs/1").locator("#facts time").first).to_have_text(
            re.compile(r" UTC$")
        )


def test_the_clock_of_the_server_goes_on(chromium: Browser, site: Served) -> None:
    with visitor(chromium, site.client.url, zone="Asia/Tokyo") as person:
        clock = person.open("/preferences").locator(".clock time")
        expect(clock).to_have_text(re.compile(r" JST$"))
        expect(clock).not_to_have_text(clock.inner_text())
        expect(clock).to_have_text(MOMENT)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (-2, "just now"),
        (-45, "45 s ago"),
        (-85, "1 min ago"),
        (-3600, "1 h ago"),
        (-3 * 86_400, "3 days ago"),
        (30, "in 30 s"),
        (3 * 3600 + 50, "in 3 h"),
    ],
)
def test_a_distance_is_told_in_its_largest_unit(seconds: int, told: str) -> None:
    assert relative(timedelta(seconds=seconds), "en") == told
