"""The crontab of examples/crontab in a browser, in every layout; and tasks of every day, in two clicks."""

import itertools
import re
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from collectors.feeds.stored_items import add_item
from support.collect_site import collect_site
from support.feeds_site import feeds_site
from support.page_checks import HEIGHT, Visitor, check_page, visitor
from support.waiting import wait_until
from support.web_client import Served, served_application
from tsuzuki.collectors.feeds.items.item import ItemState, ItemStatus
from tsuzuki.collectors.feeds.queries import feeds
from tsuzuki.collectors.feeds.tables import WaitingState
from tsuzuki.model.run_filter import RunFilter
from tsuzuki.model.states import Outcome
from tsuzuki.services.runs import Request

pytestmark = pytest.mark.slow

EXAMPLE = Path(__file__).parents[2] / "examples" / "crontab"
PHONE, DESK = 390, 1280
ROW_PIXELS_MAX = 130
PATHS = (
    "/",
    "/jobs",
    "/runs",
    "/failures",
    "/jobs/check-certificates",
    "/jobs/heartbeat",
    "/workers",
    "/audit",
)


@pytest.fixture(scope="module")
def crontab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """The example after a night: failures with and without a successful retry, a skipped tick, a waiting run."""
    folder = tmp_path_factory.mktemp("workspace") / "crontab"
    shutil.copytree(EXAMPLE, folder, ignore=shutil.ignore_patterns("__pycache__"))
    with served_application(folder, fixed=False) as served:
        application = served.application
        application.jobs.apply()
        body = {"command": ["sleep", "60"], "schedule": {"every": "1s"}}
        application.jobs.create("too-often", body)
        skipped = RunFilter(job_name="too-often", outcomes=frozenset({Outcome.SKIPPED}), limit=1)
        application.local_engine.start()
        for job in ("load-orders", "check-certificates"):
            run_id = application.runs.submit(Request(job=job)).run_id
            application.runs.wait(run_id, timeout_seconds=120)
        wait_until(lambda: bool(application.runs.find(skipped)), "a tick was skipped")
        application.jobs.set_enabled("too-often", False)
        application.local_engine.stop()
        application.runs.submit(Request(job="train-model"))
        yield served


class Clicks:
    """A person who opens a page, and counts the clicks."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.count = 0

    def click(self, target: Locator) -> None:
        target.click()
        self.count += 1


def clicks(person: Visitor) -> Clicks:
    return Clicks(person.open("/"))


@pytest.mark.parametrize(
    ("language", "theme"), list(itertools.product(("en", "ja"), ("light", "dark")))
)
def test_the_crontab_is_held_to_the_rules(
    chromium: Browser, crontab: Served, language: str, theme: str
) -> None:
    url = crontab.client.url
    with visitor(chromium, url, language=language, theme=theme, zone="Europe/Berlin") as person:
        for path in PATHS:
            page = person.visit(path)
            for width in (DESK, PHONE):
                page.set_viewport_size({"width": width, "height": HEIGHT})
                check_page(page)


def test_a_job_is_a_row_on_a_phone(chromium: Browser, crontab: Served) -> None:
    with visitor(chromium, crontab.client.url, width=PHONE) as person:
        rows = person.open("/jobs").locator("#jobs tbody tr")
        heights = rows.evaluate_all("(rows) => rows.map((row) => row.offsetHeight)")
    assert len(heights) == 25
    assert max(heights) <= ROW_PIXELS_MAX, heights


def test_what_failed_last_night_stands_on_the_first_page(
    chromium: Browser, crontab: Served
) -> None:
    with visitor(chromium, crontab.client.url) as person:
        reader = clicks(person)
        failed = reader.page.locator("#attention li", has_text="check-certificates")
        expect(failed).to_contain_text("RuntimeError")
        reader.click(failed.get_by_role("link", name="failed once"))
        expect(reader.page.locator("#runs tbody tr").first).to_be_visible()
    assert reader.count <= 2


def test_why_a_tick_was_skipped_stands_on_the_first_page(
    chromium: Browser, crontab: Served
) -> None:
    with visitor(chromium, crontab.client.url) as person:
        reader = clicks(person)
        skipped = reader.page.locator("#troubled li", has_text="too-often")
        expect(skipped).to_contain_text("was still in progress")
        reader.click(skipped.get_by_role("link", name=re.compile(r"^Run \d+$")).first)
        expect(reader.page.locator("#skipped")).to_contain_text("was still in progress")
    assert reader.count <= 2


def test_two_runs_are_compared_with_two_clicks(chromium: Browser, crontab: Served) -> None:
    with visitor(chromium, crontab.client.url) as person:
        reader = clicks(person)
        skipped = reader.page.locator("#troubled li", has_text="too-often")
        reader.click(skipped.get_by_role("link", name=re.compile(r"^Run \d+$")).first)
        reader.click(reader.page.get_by_role("link", name="Compare …"))
        expect(reader.page).to_have_url(re.compile(r"/runs/\d+/compare"))
    assert reader.count <= 2


def test_three_posts_are_approved_with_two_clicks(chromium: Browser, tmp_path: Path) -> None:
    with feeds_site(tmp_path) as site:
        with site.application.service("feeds").items._database.write() as connection:
            held = next(one.id for one in feeds.find(connection, "bot") if one.name == "held")
            for _ in range(2):
                state = ItemState(status=ItemStatus.PENDING)
                add_item(connection, held, state, waiting=WaitingState.APPROVAL)
        with visitor(chromium, site.client.url) as person:
            reader = clicks(person)
            reader.click(reader.page.get_by_role("link", name="Posts awaiting approval"))
            check_page(reader.page)
            reader.click(reader.page.get_by_role("button", name="Approve 3 posts"))
            expect(reader.page.locator("#flash")).to_contain_text("Posts approved: 3")
    assert reader.count <= 2


def test_commits_of_a_team_are_shown_with_two_clicks(chromium: Browser, tmp_path: Path) -> None:
    people = "people:\n  Ann: [ann@example.org]\nteams:\n  Core & more: [Ann]\n"
    (tmp_path / "people.yaml").write_text(people)
    with (
        collect_site(tmp_path, sections="commits: {people: people.yaml}\n") as site,
        visitor(chromium, site.client.url) as person,
    ):
        reader = clicks(person)
        reader.click(reader.page.get_by_role("link", name="Commits", exact=True))
        reader.click(reader.page.get_by_role("link", name="Core & more"))
        expect(reader.page).to_have_url(re.compile(r"/commits/chart\?team=Core"))
        check_page(reader.page)
    assert reader.count <= 2
