"""What a person does to selected runs: each by itself, and what was refused is told on the next page."""

from urllib.parse import urlencode

import pytest

from support.web_client import Client, HttpAnswer
from tsuzuki.model.errors import Unreachable
from tsuzuki.web.pages import flash

FORM = {"Content-Type": "application/x-www-form-urlencoded", "Sec-Fetch-Site": "same-origin"}


def cancel(client: Client, ids: range) -> HttpAnswer:
    body = urlencode([("verb", "cancel"), *(("id", one) for one in ids)]).encode()
    return client.request("POST", "/runs/selected", raw=body, headers=FORM)


def test_so_many_refused_runs_are_named_that_the_message_has_room_for(client: Client) -> None:
    ids = range(10**17, 10**17 + 200)
    answer = cancel(client, ids)
    assert answer.status == 303, answer.body
    cookie = answer.headers["set-cookie"].partition(";")[0]
    assert len(cookie.partition("=")[2]) <= flash.LENGTH_MAX
    shown = client.request("GET", "/runs", headers={"Cookie": cookie}).body.decode()
    assert str(ids[19]) in shown
    assert str(ids[20]) not in shown
    assert "(200)" in shown


def test_a_database_that_is_not_reached_is_not_told_as_runs_that_moved(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(_runs: object, _run_id: int) -> None:
        raise Unreachable("the database does not answer")

    monkeypatch.setattr("tsuzuki.services.runs.Runs.cancel", fail)
    assert cancel(client, range(1, 3)).status == 503
