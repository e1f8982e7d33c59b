"""Users, tokens and sessions over HTTP, with the access of a real server."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.web_client import (
    SECURE_SESSION_COOKIE,
    SESSION_COOKIE,
    Client,
    HttpAnswer,
    Served,
    served_application,
)
from tsuzuki.model.access import Role
from tsuzuki.services.access.sign_in_limits import BY_NAME_MAX
from tsuzuki.web.pages.route import FORM_TYPE
from tsuzuki.web.server import Address, WebServer
from tsuzuki.wiring.application import opened

PASSWORD = "correct horse battery"
OTHER = "staple of another horse"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """With the admin ada, made by the setup code."""
    folder: Path = tmp_path_factory.mktemp("workspace")
    with served_application(folder, fixed=False) as served:
        client = served.client.as_(None)
        code = served.application.setup_codes.create(actor="test").text
        about = {"name": "ada", "password": PASSWORD}
        wrong = client.post("setup", {"code": "AAAA-AAAA-AAAA-AAAA", **about})
        assert (wrong.status, wrong.code) == (401, "setup_code_refused")
        made = client.post("setup", {"code": code, **about})
        assert (made.status, made.json["role"]) == (201, "admin")
        again = client.post("setup", {"code": code, **about})
        assert (again.status, again.code) == (409, "setup_done")
        yield served


class Browser:
    """Sends the cookie of a session, as our own pages do."""

    def __init__(self, client: Client, name: str, password: str = PASSWORD) -> None:
        self._client = client.as_(None)
        self.answer = self._client.post("sign-in", {"name": name, "password": password})
        assert self.answer.status == 200, self.answer.body
        self.cookie = self.answer.headers["set-cookie"].partition(";")[0]

    def request(self, method: str, path: str, body: Any = None) -> HttpAnswer:
        headers = {"Cookie": self.cookie, "Sec-Fetch-Site": "same-origin"}
        return self._client.request(method, path, body, headers=headers)

    def get(self, path: str) -> HttpAnswer:
        return self.request("GET", path)


@pytest.fixture(scope="module")
def ada(served: Served) -> Browser:
    return Browser(served.client, "ada")


def added(ada: Browser, name: str, role: str = "viewer") -> Mapping[str, Any]:
    answer = ada.request("POST", "users", {"name": name, "password": OTHER, "role": role})
    assert answer.status == 201, answer.body
    user: Mapping[str, Any] = answer.json
    return user


def test_a_session_lives_in_a_cookie_that_no_script_and_no_other_site_has(
    client: Client,
) -> None:
    browser = Browser(client, "ADA")
    name, *parts = browser.answer.headers["set-cookie"].split("; ")
    assert name.startswith(f"{SESSION_COOKIE}=")
    assert {part.lower() for part in parts} == {
        "httponly",
        "samesite=lax",
        "path=/",
        "max-age=604800",
    }
    about = browser.answer.json
    assert (about["user"], about["role"]) == ("ada", "admin")
    assert name.partition("=")[2] not in browser.answer.body.decode()
    (current,) = [s for s in browser.get("sessions").json["items"] if s["is_current"]]
    assert (current["id"], current["address"]) == (about["session_id"], "127.0.0.1")
    elsewhere = {"Cookie": browser.cookie, "Sec-Fetch-Site": "cross-site"}
    forged = client.as_(None).request("POST", "sign-out", headers=elsewhere)
    assert (forged.status, forged.code) == (403, "cross_site")
    out = browser.request("POST", "sign-out")
    assert (out.status, "Max-Age=0" in out.headers["set-cookie"]) == (204, True)
    assert browser.get("sessions").status == 401


def test_a_new_sign_in_ends_the_session_that_it_replaces(client: Client) -> None:
    before = Browser(client, "ada")
    body = {"name": "ada", "password": PASSWORD}
    answer = before.request("POST", "sign-in", body)
    assert answer.headers["set-cookie"].partition(";")[0] != before.cookie
    assert before.get("sessions").status == 401


def test_a_refusal_does_not_tell_whether_there_is_such_a_user_and_tries_are_limited(
    client: Client, ada: Browser
) -> None:
    added(ada, "tried")

    def attempt(name: str) -> HttpAnswer:
        return client.as_(None).post("sign-in", {"name": name, "password": "wrong"})

    known, unknown = attempt("tried"), attempt("not-there")
    assert (known.status, known.code) == (401, "sign_in_refused")
    assert (unknown.status, unknown.body) == (401, known.body)
    assert "set-cookie" not in known.headers
    for _ in range(BY_NAME_MAX - 1):
        attempt("tried")
    limited = attempt("tried")
    assert (limited.status, limited.code) == (429, "sign_in_limited")
    assert 0 < int(limited.headers["retry-after"]) <= 900


def test_a_token_is_shown_once_and_acts_until_it_is_revoked(client: Client, ada: Browser) -> None:
    wanted = {"name": "ci", "role": "operator", "scopes": ["runs:read", "access:own"]}
    made = ada.request("POST", "tokens", wanted)
    assert (made.status, made.json["user"]) == (201, "ada")
    text = made.json["token"]
    program = client.as_(text)
    assert (program.get("runs").status, program.get("jobs").status) == (200, 403)
    assert text not in ada.get("tokens").body.decode()
    more = program.post("tokens", {"name": "more", "role": "admin"})
    assert (more.status, more.code) == (403, "grant_refused")
    assert program.post("sign-out").code == "no_session"
    assert ada.request("POST", "tokens", wanted).code == "token_exists"
    revoked = ada.request("DELETE", f"tokens/{made.json['id']}")
    assert revoked.json["state"] == "revoked"
    assert program.get("runs").status == 401
    assert [t["name"] for t in ada.get("tokens?revoked=true").json["items"]] == ["ci"]
    assert ada.get("tokens?count=true").json["count"] == {"value": 0, "exact": True}
    assert ada.request("DELETE", "tokens/none").code == "token_not_found"


def test_a_key_for_repeats_stores_neither_a_token_nor_a_password(
    client: Client, ada: Browser, served: Served
) -> None:
    headers = {"Cookie": ada.cookie, "Sec-Fetch-Site": "same-origin", "Idempotency-Key": "once"}
    body = {"name": "keyed", "role": "viewer"}
    first = client.as_(None).request("POST", "tokens", body, headers=headers)
    again = client.as_(None).request("POST", "tokens", body, headers=headers)
    assert (first.status, again.status, again.code) == (201, 409, "token_exists")
    stored = b"".join(path.read_bytes() for path in _database_files(served))
    assert b"keyed" in stored
    assert first.json["token"].encode() not in stored


def _database_files(served: Served) -> list[Path]:
    folder = Path(str(served.application.configuration.database_url).partition("///")[2]).parent
    return [path for path in folder.iterdir() if ".db" in path.name]


def test_a_key_of_a_token_is_not_that_of_another_by_the_same_name(
    client: Client, ada: Browser, served: Served
) -> None:
    added(ada, "dave", "operator")
    served.application.jobs.define("hello", {"command": ["true"]})
    started = []
    for user, password in (("ada", PASSWORD), ("dave", OTHER)):
        browser = Browser(client, user, password)
        made = browser.request("POST", "tokens", {"name": "deploy", "role": "operator"})
        program = client.as_(made.json["token"])
        answer = program.post("jobs/hello/runs", {}, Idempotency_Key="one")
        again = program.post("jobs/hello/runs", {}, Idempotency_Key="one")
        assert again.json["id"] == answer.json["id"]
        started.append(answer.json["id"])
        browser.request("DELETE", "tokens/deploy")
    assert len(set(started)) == 2


def test_users_are_added_changed_and_removed_and_the_last_admin_stays(
    client: Client, ada: Browser
) -> None:
    added(ada, "Bob")
    taken = ada.request("POST", "users", {"name": "bob", "password": OTHER, "role": "viewer"})
    assert (taken.status, taken.code) == (409, "user_exists")
    bob = Browser(client, "bob", OTHER)
    assert [user["name"] for user in bob.get("users").json["items"]] == ["bob"]
    assert bob.get("users/ada").status == 404
    assert bob.request("PATCH", "users/bob", {"role": "admin"}).code == "right_missing"
    assert bob.get("sessions?every_user=true").status == 403
    assert ada.request("PATCH", "users/bob", {"role": "operator"}).json["role"] == "operator"
    assert ada.request("PATCH", "users/bob", {}).code == "one_change"
    assert ada.request("PATCH", "users/bob", {"disabled": True}).json["disabled_at"]
    assert bob.get("users").status == 401
    assert ada.request("PATCH", "users/bob", {"disabled": False}).json["disabled_at"] is None
    assert ada.request("DELETE", "users/ada").code == "last_admin"
    assert ada.request("DELETE", "users/bob").status == 204
    assert ada.get("users/bob").code == "user_not_found"


def test_a_password_is_changed_with_the_current_one(client: Client, ada: Browser) -> None:
    added(ada, "carol")
    here, there = (Browser(client, "carol", OTHER) for _ in range(2))
    wrong = here.request("PUT", "users/carol/password", {"password": PASSWORD, "current": "no"})
    assert (wrong.status, wrong.json["problems"][0]["where"]) == (422, "body.current")
    body = {"password": PASSWORD, "current": OTHER}
    assert here.request("PUT", "users/carol/password", body).status == 204
    assert (here.get("sessions").status, there.get("sessions").status) == (200, 401)
    assert ada.request("PUT", "users/carol/password", {"password": OTHER}).status == 204
    assert here.get("sessions").status == 401
    again = Browser(client, "carol", OTHER)
    session_id = again.answer.json["session_id"]
    assert session_id in [s["id"] for s in ada.get("sessions?every_user=true").json["items"]]
    assert ada.request("DELETE", f"sessions/{session_id}").status == 204
    assert again.get("sessions").status == 401


def test_over_tls_the_cookie_is_for_tls_and_this_host_only(served: Served) -> None:
    server = WebServer(
        served.application,
        Address(host="127.0.0.1", port=0),
        allowed_hosts=["jobs.example"],
        trusted_proxies=["127.0.0.1"],
    )
    server.start()
    try:
        headers = {"Host": "jobs.example", "X-Forwarded-Proto": "https"}
        body = {"name": "ada", "password": PASSWORD}
        answer = Client(server.url, None).request("POST", "sign-in", body, headers=headers)
        name, *parts = answer.headers["set-cookie"].split("; ")
        assert name.startswith(f"{SECURE_SESSION_COOKIE}=")
        assert "secure" in {part.lower() for part in parts}
        me = Client(server.url, None).request("GET", "me", headers={**headers, "Cookie": name})
        assert me.status == 200
        # The name without the prefix is one that a page without TLS could have set.
        plain = {**headers, "Cookie": name.removeprefix("__Host-")}
        assert Client(server.url, None).request("GET", "me", headers=plain).status == 401
    finally:
        server.stop()


def test_two_installations_on_one_host_do_not_sign_each_other_out(
    client: Client, ada: Browser, tmp_path: Path
) -> None:
    with opened(environ={}, cwd=tmp_path) as other:
        other.users.add("ada", PASSWORD, role=Role.ADMIN, by=other.principal)
        server = WebServer(other, Address(host="127.0.0.1", port=0))
        server.start()
        try:
            there = Browser(Client(server.url), "ada")
            assert there.cookie.partition("=")[0] != ada.cookie.partition("=")[0]
            both = {"Cookie": f"{ada.cookie}; {there.cookie}"}
            for url in (client.url, server.url):
                answer = Client(url, None).request("GET", "sessions", headers=both)
                assert answer.status == 200
        finally:
            server.stop()


def test_the_page_ends_the_session_that_a_copied_cookie_could_use(client: Client) -> None:
    browser = Browser(client, "ada")
    headers = {
        "Cookie": browser.cookie,
        "Sec-Fetch-Site": "same-origin",
        "Content-Type": FORM_TYPE,
    }
    out = client.as_(None).request("POST", "/sign-out", headers=headers, raw=b"")
    assert out.status == 303
    assert browser.get("sessions").status == 401
