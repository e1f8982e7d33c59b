"""What holds on every screen: weight, hostile texts, keyboard only, a lost connection, nothing moves."""

import gzip
import re
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, expect

from support.page_checks import (
    REQUESTS_MAX,
    WEIGHT_MAX_BYTES,
    Visitor,
    layout_shifts,
    visitor,
)
from support.web_client import Client, HttpAnswer, Served
from tsuzuki.services.runs import Request
from tsuzuki.web.pages import screens
from tsuzuki.web.pages.route import PageRoute, TwinRoute

EXAMPLES = {"run_id": "4", "name": "nightly-report", "key": "lease_seconds"}
"""Objects of the workspace, for pages that show one."""

HARMFUL = (b"<img src=x", b"\xe2\x80\xae", b"hunter2-secret")
"""A tag, a character that turns the line round, and a secret: in arguments, keys, logs and errors of runs."""

SEEN_AGAIN = "document.dispatchEvent(new Event('visibilitychange'))"


def addresses(kind: type[PageRoute] | type[TwinRoute]) -> Iterator[str]:
    """Of every page, or twin: those of one object by an example."""
    for screen in screens.screens():
        for route in screen.routes:
            if not isinstance(route, kind) or route.methods != {"GET"}:
                continue
            names = re.findall(r"\{(\w+)", route.path)
            if set(names) <= set(EXAMPLES):
                pattern = r"\{(\w+)(?::\w+)?\}"
                yield re.sub(pattern, lambda found: EXAMPLES[found[1]], route.path)


def answers(client: Client, kind: type[PageRoute] | type[TwinRoute]) -> dict[str, HttpAnswer]:
    """Those that need no further parameter."""
    found = {
        path: client.get(path, Accept="text/html", Accept_Encoding="gzip")
        for path in addresses(kind)
    }
    assert not [path for path, answer in found.items() if answer.status >= 500]
    return {path: answer for path, answer in found.items() if answer.status == 200}


@pytest.fixture
def owner(site: Served) -> Client:
    return site.client.as_(None)


def test_every_page_is_light_and_asks_for_little(owner: Client) -> None:
    found = answers(owner, PageRoute)
    assert len(found) > 15
    sizes: dict[str, int] = {}
    for path, answer in found.items():
        plain = gzip.decompress(answer.body).decode()
        files = set(re.findall(r'(?:href|src)="(/static/[^"]+)"', plain))
        for name in files - sizes.keys():
            sizes[name] = len(owner.get(name, Accept_Encoding="br").body)
        weight = len(answer.body) + sum(sizes[name] for name in files)
        assert weight <= WEIGHT_MAX_BYTES, (path, weight)
        assert 1 + len(files) <= REQUESTS_MAX, (path, files)
        assert "http" not in re.sub(r"https?://127\.0\.0\.1[:\d]*|xmlns=\S+", "", " ".join(files))


def test_hostile_texts_do_no_harm_on_any_page_or_twin(owner: Client) -> None:
    for path, answer in answers(owner, PageRoute).items():
        body = gzip.decompress(answer.body)
        assert not [text for text in HARMFUL if text in body], path
        assert not re.search(rb"<[a-z][^>]* (?:style|on\w+)=", body), path
        assert not re.search(rb"<script(?! type=\"module\" src=\"/static/)", body), path
        assert not re.search(rb"(?:href|src|action)=\"(?!/|#|https?:|data-)", body), path
    for path, answer in answers(owner, TwinRoute).items():
        assert answer.headers["content-type"] == "application/json", path
        assert b"hunter2-secret" not in owner.get(path).body, path


def new_run(site: Served) -> int:
    return site.application.runs.submit(Request(job="needs-gpu")).run_id


def test_a_run_is_found_and_canceled_by_keyboard_alone(person: Visitor, site: Served) -> None:
    run_id = new_run(site)
    page = person.open("/runs")
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="Skip to content")).to_be_focused()
    page.keyboard.press("Enter")
    page.keyboard.press("Control+k")
    page.keyboard.type(str(run_id))
    expect(page.locator("#palette-list li", has_text="Run")).to_have_count(1)
    page.keyboard.press("Enter")
    expect(page).to_have_url(re.compile(f"/runs/{run_id}$"))
    cancel = page.get_by_role("link", name="Cancel …")
    for _ in range(60):
        page.keyboard.press("Tab")
        if cancel.evaluate("(link) => link === document.activeElement"):
            break
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Confirm")
    expect(dialog).to_be_visible()
    page.keyboard.press("Escape")
    expect(dialog).to_be_hidden()
    expect(cancel).to_be_focused()
    page.keyboard.press("Enter")
    expect(dialog.get_by_role("button", name=f"Cancel run {run_id}")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#flash")).to_have_text(f"Run {run_id} canceled.")


def test_a_lost_connection_costs_no_row_and_doubles_none(chromium: Browser, site: Served) -> None:
    waiting = new_run(site)
    with visitor(chromium, site.client.url) as person:
        page = person.open("/runs?window=all")
        person.context.set_offline(True)
        page.evaluate(SEEN_AGAIN)
        expect(page.locator("#live-mark")).to_have_attribute("data-state", "lost")
        site.application.runs.cancel(waiting)
        made = [new_run(site) for _ in range(3)]
        person.faults.clear()  # the browser reports the connection
        person.context.set_offline(False)
        page.evaluate(SEEN_AGAIN)
        expect(page.locator(f"#run-{waiting}")).to_contain_text("Canceled")
        expect(page.get_by_role("link", name="3 new")).to_be_visible()
        page.get_by_role("link", name="3 new").click()
        expect(page.locator(f"#run-{made[-1]}")).to_be_visible()
        ids = page.locator("#runs tbody tr").evaluate_all("(rows) => rows.map((row) => row.id)")
        assert len(ids) == len(set(ids))
        stored = {f"run-{run_id}" for run_id in (waiting, *made)}
        assert stored <= set(ids)
        person.faults.clear()


def test_nothing_moves_while_a_dialog_is_open_or_text_is_typed(
    person: Visitor, site: Served
) -> None:
    run_id = new_run(site)
    page = person.open(f"/runs/{run_id}")
    page.get_by_role("link", name="Cancel …").click()
    dialog = page.get_by_role("dialog", name="Confirm")
    expect(dialog).to_be_visible()

    def change() -> None:
        site.application.runs.cancel(run_id)
        page.evaluate(SEEN_AGAIN)
        expect(page.locator("#live-mark")).to_have_attribute("data-state", "paused")

    assert layout_shifts(page, change) == []
    expect(page.locator("h1").first).to_contain_text("Pending")
    dialog.get_by_role("link", name="Back").click()
    expect(page.locator("h1").first).to_contain_text("Canceled")
    page.goto(person.url + "/runs")
    page.locator(".filters summary").click()
    page.get_by_role("textbox", name="Job").fill("half a na")
    new_run(site)
    page.evaluate(SEEN_AGAIN)
    expect(page.locator("#live-mark")).to_have_attribute("data-state", "paused")
    expect(page.get_by_role("textbox", name="Job")).to_have_value("half a na")
    expect(page.locator("#new-rows")).to_be_hidden()


def test_a_pasted_id_or_name_leads_there(owner: Client) -> None:
    for text, path in (
        ("4", "/runs/4"),
        ("%234", "/runs/4"),
        ("run+4", "/runs/4"),
        ("lease_seconds", "/settings/lease_seconds"),
        ("runs", "/runs"),
        ("needs-gpu", None),
    ):
        answer = owner.get(f"/go?q={text}")
        assert answer.status == 303, text
        assert path is None or urlsplit(answer.headers["location"]).path == path
    found = owner.get("/go.json?q=night").json["places"]
    assert [(place["kind"], place["label"]) for place in found] == [("job", "nightly-report")]
    assert owner.get("/go?q=999999999").status == 200
    assert owner.get("/go.json?q=lease").json["places"][0]["kind"] == "setting"
    assert owner.get("/go.json?q=nightly-reprot").json["hint"]
