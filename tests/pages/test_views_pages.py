"""Saved views: a list with its filters is saved under a name, opened, and deleted by those who may."""

import re
from collections.abc import Iterator
from urllib.parse import urlencode

import pytest
from playwright.sync_api import expect

from support.page_checks import Layouts, Visitor
from support.page_site import HOSTILE
from support.web_client import Client, HttpAnswer, Served, served_application
from tsuzuki.services.saved_views import OWNED_MAX
from tsuzuki.web.pages.route import FORM_TYPE


def test_a_list_is_saved_opened_and_deleted(
    layouts: Layouts, person: Visitor, site: Served
) -> None:
    page = person.open("/runs?state=FAILED")
    dialog = page.get_by_role("dialog", name="Confirm")
    page.get_by_role("link", name="Save view").click()
    dialog.get_by_role("textbox", name="Name").fill(HOSTILE)
    dialog.get_by_role("button", name="Save view").click()
    expect(page.locator("#flash")).to_have_text("View saved.")
    expect(page).to_have_url(re.compile(r"/runs\?state=FAILED$"))
    layouts.check("/views")
    page.goto(f"{site.client.url}/views")
    page.locator("#views a").first.click()
    expect(page).to_have_url(re.compile(r"/runs\?state=FAILED$"))
    page.go_back()
    page.get_by_role("link", name="Delete …").click()
    dialog.get_by_role("button", name="Delete view").click()
    expect(page.locator("main")).to_contain_text("No saved views yet")
    actions = [entry.action for entry in site.application.audit.find(object_type="view")]
    assert actions == ["view.delete", "view.save"]


@pytest.fixture(scope="module")
def fixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_application(tmp_path_factory.mktemp("roles")) as served:
        yield served


def send(client: Client, path: str, **fields: object) -> HttpAnswer:
    raw = urlencode(fields).encode()
    return client.request("POST", path, raw=raw, headers={"Content-Type": FORM_TYPE})


def test_a_view_is_seen_by_all_and_deleted_by_its_owner_or_an_admin(fixed: Served) -> None:
    viewer, operator, admin = (fixed.client.as_(role) for role in ("viewer", "operator", "admin"))
    for address in ("/runs", "/jobs?sort=next"):
        assert send(viewer, "/views/new", name="mine", address=address).status == 303
    assert [view["address"] for view in admin.get("/views.json").json["views"]] == [
        "/jobs?sort=next"
    ]
    shown = operator.get("/views.json").json["views"]
    assert [(view["owner"], view["can_delete"]) for view in shown] == [("user:viewer", False)]
    assert send(operator, "/views/delete", name="mine", owner="user:viewer").status == 403
    for client, is_offered in ((viewer, True), (operator, False), (admin, True)):
        assert ("/views/delete?" in client.get("/views").body.decode()) is is_offered
    assert send(admin, "/views/delete", name="mine", owner="user:viewer").status == 303
    assert send(viewer, "/views/delete", name="mine", owner="user:viewer").status == 404


@pytest.mark.parametrize(
    "address", ["//example.org/", "https://example.org/", "javascript:x", "/\\x"]
)
def test_a_view_leads_to_this_server_only(fixed: Served, address: str) -> None:
    assert send(fixed.client, "/views/new", name="away", address=address).status == 422
    assert fixed.client.get(f"/views/new?{urlencode({'address': address})}").status == 422


def test_a_person_cannot_save_without_end_and_keeps_what_was_typed(fixed: Served) -> None:
    saved = fixed.application.saved_views.acting_as("user:operator")
    for number in range(OWNED_MAX):
        saved.save(f"view {number}", "/runs")
    refused = send(fixed.client.as_("operator"), "/views/new", name="one more", address="/runs")
    assert refused.status == 409
    assert b'value="one more"' in refused.body
    nameless = send(fixed.client, "/views/new", name="  ", address="/runs")
    assert nameless.status == 422


def test_a_token_that_may_only_read_saves_and_deletes_no_view(fixed: Served) -> None:
    reader = fixed.client.as_("narrow")
    assert send(reader, "/views/new", name="v", address="/runs").status == 403
    assert send(reader, "/views/delete", name="v", owner="user:admin").status == 403
