"""Refused credentials are logged once for each address and minute, however many there are."""

from pathlib import Path
from urllib.parse import urlencode

import pytest

from support.moving_clock import MovingClock
from support.web_client import served_application
from tsuzuki.web.pages.route import FORM_TYPE
from tsuzuki.web.security.refusal_log import ADDRESSES_MAX, INTERVAL_SECONDS, RefusalLog


def test_a_flood_of_refusals_is_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    clock = MovingClock()
    refusals = RefusalLog(clock)
    for _ in range(500):
        refusals.note("192.0.2.7", "token")
    assert caplog.text.count("credentials_refused") == 1
    clock.advance(INTERVAL_SECONDS)
    refusals.note("192.0.2.7", "token")
    assert caplog.text.count("credentials_refused") == 2
    assert "499" in caplog.text


def test_the_addresses_that_are_remembered_are_limited() -> None:
    refusals = RefusalLog(MovingClock())
    for number in range(ADDRESSES_MAX + 10):
        refusals.note(f"address {number}", "token")
    assert len(refusals._by_address) == ADDRESSES_MAX


@pytest.mark.parametrize("is_form", [False, True])
def test_a_refused_setup_code_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, is_form: bool
) -> None:
    guess = {"code": "AAAA-AAAA-AAAA-AAAA", "name": "eve", "password": "correct horse battery"}
    with served_application(tmp_path, fixed=False) as served:
        client = served.client.as_(None)
        if is_form:
            headers = {"Content-Type": FORM_TYPE, "Sec-Fetch-Site": "same-origin"}
            raw = urlencode(guess).encode()
            refused = client.request("POST", "/setup", raw=raw, headers=headers)
        else:
            refused = client.post("setup", guess)
        assert refused.status == 401
        assert not served.application.users.any()
    assert caplog.text.count("credentials_refused") == 1
    assert "setup code" in caplog.text
    assert "AAAA" not in caplog.text
