"""Settings, tokens, sessions, users, one's own password, and webhooks."""

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser as Chromium
from playwright.sync_api import expect

from support.access_site import PASSWORD, AccessSite, access_site
from support.page_checks import Visitor, layouts, visitor
from tsuzuki.model.access import Role
from tsuzuki.model.settings import SETTINGS
from tsuzuki.web.pages.screens.settings import GROUPS, MEANINGS

PAGES = [
    "/settings",
    "/settings/lease_seconds",
    "/settings/configuration",
    "/settings/webhooks",
    "/tokens",
    "/tokens/new",
    "/sessions?every_user=true",
    "/users",
    "/users/bob",
    "/password",
    "/docs",
]


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AccessSite]:
    with access_site(tmp_path_factory.mktemp("workspace")) as found:
        yield found


@pytest.fixture
def ada(chromium: Chromium, place: AccessSite) -> Iterator[Visitor]:
    with visitor(chromium, place.url) as person:
        place.enter(person.context, "ada")
        yield person


def test_each_page_is_held_to_the_rules(chromium: Chromium, place: AccessSite) -> None:
    with layouts(chromium, place.url, lambda context: place.enter(context, "ada")) as found:
        for path in PAGES:
            found.check(path, has_twin=path != "/docs")


def test_every_setting_has_its_place_and_its_meaning() -> None:
    assert {key: setting.description for key, setting in SETTINGS.items()} == dict(MEANINGS)
    assert sorted(key for keys in GROUPS.values() for key in keys) == sorted(SETTINGS)


def test_a_setting_is_changed_refused_and_reset(ada: Visitor, place: AccessSite) -> None:
    page = ada.open("/settings/lease_seconds")
    page.get_by_label("New value").fill("25")
    page.get_by_role("button", name="Change lease_seconds").click()
    expect(page.locator("#flash")).to_contain_text("lease_seconds is now 25.0")
    row = page.get_by_role("row", name=re.compile("^lease_seconds"))
    expect(row).to_contain_text("25 s")
    expect(row).to_contain_text("user:ada")
    page.goto(ada.url + "/settings/lease_seconds")
    page.get_by_label("New value").fill("4.5 apples")
    page.get_by_role("button", name="Change lease_seconds").click()
    expect(page.get_by_role("alert")).to_contain_text("must be a number from 1.0 to 600.0")
    expect(page.get_by_label("New value")).to_have_value("4.5 apples")
    ada.faults.clear()  # the browser reports the 422
    page.get_by_role("link", name="Reset …").click()
    dialog = page.get_by_role("dialog", name="Confirm")
    expect(dialog).to_contain_text("from 25 s to the default, 10 s")
    dialog.get_by_role("button", name="Reset lease_seconds").click()
    expect(page.locator("#flash")).to_contain_text("lease_seconds was reset")
    newest = place.served.application.audit.find(object_type="setting", limit=1)[0]
    assert newest.actor == "user:ada"


def test_a_token_is_shown_once_used_and_revoked(ada: Visitor, place: AccessSite) -> None:
    page = ada.open("/tokens/new")
    page.get_by_label("Name").fill("backup")
    page.get_by_label("Role").select_option("operator")
    page.get_by_text("Limit permissions").click()
    page.get_by_label("runs:read").check()
    page.get_by_role("button", name="Create token").click()
    text = page.locator("#token code").inner_text()
    assert text.startswith("tsz_")
    caller = place.served.client.as_(text)
    assert caller.get("/api/v1/runs").status == 200
    assert caller.get("/api/v1/workers").status == 403
    page.get_by_role("link", name="Done").click()
    assert text not in page.content()
    row = page.get_by_role("row", name=re.compile("^backup"))
    expect(row).to_contain_text("runs:read")
    row.get_by_role("link", name="Revoke").click()
    page.get_by_role("dialog").get_by_role("button", name="Revoke backup").click()
    expect(page.locator("#flash")).to_have_text("Token backup revoked.")
    assert caller.get("/api/v1/runs").status == 401
    expect(page.get_by_role("row", name=re.compile("^backup"))).to_have_count(0)
    page.get_by_role("link", name="Include revoked").click()
    expect(page.get_by_role("row", name=re.compile("^backup"))).to_contain_text("Revoked")


def test_what_was_typed_for_a_token_is_kept(place: AccessSite) -> None:
    browser = place.client(place.sign_in("bob"))
    answer = browser.post("/tokens/new", "name=not+a+name&role=viewer&days=ten&scopes=runs%3Aread")
    assert answer.status == 422
    page = answer.body.decode()
    assert 'value="not a name"' in page
    assert 'value="ten"' in page
    assert 'value="runs:read" checked' in page


def test_a_viewer_gives_no_more_than_a_viewer_has(place: AccessSite) -> None:
    browser = place.client(place.sign_in("cyd"))
    assert b'value="admin"' not in browser.get("/tokens/new").body
    refused = browser.post("/tokens/new", "name=up&role=admin&days=1")
    assert refused.status == 403
    assert b"cannot grant permissions it does not have" in refused.body
    for path in ("/users", "/settings", "/sessions?every_user=true"):
        assert browser.get(path).status == 403, path
    for path in ("/users", "/users/bob/remove", "/settings/lease_seconds/reset"):
        assert browser.post(path).status == 403, path


def test_a_token_of_another_is_not_there_for_a_viewer(place: AccessSite) -> None:
    application = place.served.application
    (ci,) = (token for token in application.tokens.find(by=place.principal("bob")))
    browser = place.client(place.sign_in("cyd"))
    assert browser.get(f"/tokens/{ci.id}/revoke").status == 404
    assert browser.post(f"/tokens/{ci.id}/revoke").status == 404
    assert b"ci" not in re.findall(rb"<tbody.*?</tbody>", browser.get("/tokens").body, re.S)


def test_a_user_is_added_changed_disabled_and_removed(ada: Visitor, place: AccessSite) -> None:
    users, admin = place.served.application.users, place.served.application.principal
    page = ada.open("/users")
    page.get_by_text("Add user …").click()
    page.get_by_label("Name").fill("dan")
    page.get_by_label("Role").select_option("operator")
    page.get_by_label("Password").fill("short")
    page.get_by_role("button", name="Add user").click()
    expect(page.get_by_role("alert")).to_contain_text("password")
    expect(page.get_by_label("Name")).to_have_value("dan")
    expect(page.get_by_label("Role")).to_have_value("operator")
    ada.faults.clear()  # the browser reports the 422
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Add user").click()
    expect(page.locator("#flash")).to_have_text("dan can now sign in.")
    place.sign_in("dan")
    page.get_by_label("Role").select_option("viewer")
    page.get_by_role("button", name="Set role").click()
    expect(page.locator("#flash")).to_have_text("dan now has the role viewer.")
    expect(page.get_by_role("table", name="Sessions")).to_contain_text("Chrome")
    page.get_by_role("link", name="Disable …").click()
    dialog = page.get_by_role("dialog", name="Confirm")
    expect(dialog).to_contain_text("Sessions that will end: 1")
    dialog.get_by_role("button", name="Disable dan").click()
    expect(page.locator("main")).to_contain_text("No sessions.")
    page.get_by_role("button", name="Enable").click()
    expect(page.locator("#flash")).to_have_text("User dan enabled.")
    page.get_by_role("link", name="Remove …").click()
    dialog.get_by_role("button", name="Remove dan").click()
    expect(page.locator("#flash")).to_have_text("User dan removed.")
    assert [user.name for user in users.find(by=admin)] == ["ada", "bob", "cyd"]


def test_the_last_admin_stays(place: AccessSite) -> None:
    browser = place.client(place.sign_in("ada"))
    for path, form in (
        ("/users/ada/remove", ""),
        ("/users/ada/disable", ""),
        ("/users/ada/role", "role=viewer"),
    ):
        answer = browser.post(path, form)
        assert answer.status == 409, path
        assert b"is the last admin" in answer.body, path


def test_one_changes_the_own_password_with_the_current_one(place: AccessSite) -> None:
    application = place.served.application
    application.users.add("eve", PASSWORD, role=Role.VIEWER, by=application.principal)
    here, other = (place.client(place.sign_in("eve")) for _ in range(2))
    wrong = here.post("/password", "current=wrong&password=another-long-password")
    assert wrong.status == 422
    assert b"wrong current password" in wrong.body
    assert here.post("/password", f"current={PASSWORD}&password=another-long-one").status == 303
    assert here.get("/sessions").status == 200
    assert other.get("/sessions").status == 303  # to the sign-in page
    application.users.remove("eve", by=application.principal)


def test_sessions_are_ended_one_by_one_and_all_others(ada: Visitor, place: AccessSite) -> None:
    first, second = (place.client(place.sign_in("ada")) for _ in range(2))
    page = ada.open("/sessions")
    rows = page.locator("tbody tr")
    before = rows.count()
    expect(page.locator("tbody tr", has_text="current")).to_have_count(1)
    rows.filter(has_not_text="current").first.get_by_role("link", name="End").click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("^End session")).click()
    expect(rows).to_have_count(before - 1)
    page.get_by_role("link", name="End all others …").click()
    expect(page.get_by_role("dialog")).to_contain_text(f"End {before - 2} other session")
    page.get_by_role("dialog").get_by_role("button", name=re.compile("^End ")).click()
    expect(rows).to_have_count(1)
    assert {first.get("/sessions").status, second.get("/sessions").status} == {303}
    page.get_by_role("link", name="End", exact=False).last.click()
    page.get_by_role("dialog").get_by_role("button", name=re.compile("^End session")).click()
    expect(page).to_have_url(re.compile("/sign-in"))


def test_webhooks_tell_their_proof_their_last_event_and_what_is_missing(
    place: AccessSite,
) -> None:
    browser = place.client(place.sign_in("ada"))
    shop, unset = browser.get("/settings/webhooks.json").json["webhooks"]
    assert (shop["event_type"], shop["jobs"], shop["problem"]) == ("order.paid", ["on-order"], None)
    assert shop["last_event_at"] is not None
    assert (unset["last_event_at"], unset["problem"]["code"]) == (None, "variable_missing")
    for path in ("/settings/webhooks", "/settings/configuration", "/settings/configuration.json"):
        assert b"a-secret-of-the-shop" not in browser.get(path).body, path


def test_what_a_browser_calls_itself_does_no_harm(ada: Visitor) -> None:
    page = ada.open("/sessions?every_user=true")
    expect(page.get_by_role("row", name=re.compile("^bob <img src=x onerror"))).to_have_count(1)
    assert page.locator("img").count() == 0
