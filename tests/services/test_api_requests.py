"""Requests with an Idempotency-Key: one claim, one answer, on both databases and across processes."""

import pytest

from support.moving_clock import MovingClock
from support.threads import at_once
from tsuzuki.model.errors import Conflict, UsageError
from tsuzuki.services.api_requests import ApiRequests, Claim, StoredAnswer
from tsuzuki.store.api_requests import CLAIM_SECONDS, KEPT_SECONDS
from tsuzuki.store.sql.database import Database

DONE = StoredAnswer(status=201, headers={"location": "/x"}, body='{"id":1}')


@pytest.fixture
def requests(database: Database) -> ApiRequests:
    return ApiRequests(database=database)


def claim(requests: ApiRequests, *, actor: str = "ada", fingerprint: str = "f") -> Claim:
    found = requests.claim(actor=actor, key="k", fingerprint=fingerprint)
    assert isinstance(found, Claim)
    return found


def test_of_many_at_once_one_has_the_claim(requests: ApiRequests) -> None:
    def ask(_number: int) -> Claim | None:
        try:
            return claim(requests)
        except Conflict:
            return None

    claims = [found for found in at_once(8, ask) if found is not None]
    assert len(claims) == 1
    requests.answer(claims[0], DONE)
    assert requests.claim(actor="ada", key="k", fingerprint="f") == DONE


def test_another_request_with_the_key_is_refused_for_a_day(
    requests: ApiRequests, clock: MovingClock
) -> None:
    requests.answer(claim(requests), DONE)
    with pytest.raises(UsageError, match="was already used for a different request"):
        claim(requests, fingerprint="other")
    assert claim(requests, actor="grace", fingerprint="other")
    clock.advance(KEPT_SECONDS + 1)
    assert claim(requests, fingerprint="other")


def test_the_claim_of_a_process_that_died_is_taken_over_under_the_same_id(
    requests: ApiRequests, clock: MovingClock
) -> None:
    dead = claim(requests)
    with pytest.raises(Conflict, match="is still in progress"):
        claim(requests)
    clock.advance(CLAIM_SECONDS + 1)
    heir = claim(requests)
    assert heir.request_id == dead.request_id
    requests.answer(dead, StoredAnswer(status=200, headers={}, body="late"))
    requests.release(dead)
    requests.answer(heir, DONE)
    assert requests.claim(actor="ada", key="k", fingerprint="f") == DONE


def test_a_request_of_unknown_outcome_is_made_again_at_once_under_the_same_id(
    requests: ApiRequests,
) -> None:
    first = claim(requests)
    requests.lapse(first)
    assert claim(requests).request_id == first.request_id


def test_a_request_that_did_nothing_is_forgotten(requests: ApiRequests) -> None:
    first = claim(requests)
    requests.release(first)
    assert claim(requests, fingerprint="other").request_id != first.request_id


def test_all_processes_sign_with_one_key(database: Database) -> None:
    def ask(_number: int) -> bytes:
        return ApiRequests(database=database).cursor_key

    keys = set(at_once(4, ask))
    assert len(keys) == 1
    assert len(keys.pop()) == 32
