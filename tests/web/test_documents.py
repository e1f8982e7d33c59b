"""The OpenAPI document is the one in the repository, and the page shows all of it."""

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from support.web_client import Client, Served
from tsuzuki.model.loop_failure import LoopFailure
from tsuzuki.services.workers import LeaseView

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"


def test_the_document_in_the_repository_is_what_is_served(client: Client) -> None:
    """A change of the API shows in the diff. Write it anew with `make openapi`."""
    served = client.as_(None).get("/openapi.json").json
    kept = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    assert served["openapi"] == "3.1.0"
    assert served == kept


def test_the_page_lists_every_route_and_is_public(client: Client) -> None:
    page = client.as_(None).get("/docs", Accept="text/html")
    text = page.body.decode()
    served = client.get("/openapi.json").json
    for operations in served["paths"].values():
        for operation in operations.values():
            assert f'id="{operation["operationId"]}"' in text
    assert "<code>/api/v1/jobs/{name}/runs</code>" in text
    assert "unsafe" not in page.headers["content-security-policy"]
    assert '<nav class="menu-list"' not in text
    assert '<nav class="menu-list"' in client.get("/docs").body.decode()


def test_a_process_is_alive_and_ready(client: Client) -> None:
    assert client.as_(None).get("/livez").json["status"] == "ok"
    ready = client.as_(None).get("/readyz")
    assert (ready.status, ready.json["ready"]) == (200, True)
    checks = {check["name"]: check["ok"] for check in ready.json["checks"]}
    assert checks == {"database": True, "schema": True, "lease": False}
    assert ready.json["lease"] is None
    assert client.get("/metrics").headers["content-type"].startswith("text/plain")


def test_failing_loops_are_reported_and_make_no_process_unready(
    served: Served, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    failure = LoopFailure(
        loop="lead", failures=5, since=datetime.now(UTC), code="bug", error="ValueError('secret')"
    )
    monkeypatch.setattr(served.application.local_engine, "failing_loops", lambda: [failure])
    ready = client.as_(None).get("/readyz")
    assert (ready.status, ready.json["ready"]) == (200, True)
    assert ready.json["checks"][-1] == {"name": "loops", "ok": False, "detail": "lead: bug"}
    monkeypatch.setattr(served.application.local_engine, "failing_loops", list)
    checks = client.as_(None).get("/readyz").json["checks"]
    assert (checks[-1]["name"], checks[-1]["ok"]) == ("loops", True)


def test_a_lease_that_ran_out_is_told_and_makes_no_process_unready(
    served: Served, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = LeaseView(
        epoch=7, is_valid=False, expires_at=datetime.now(UTC), age_seconds=9.5, left_seconds=-4.5
    )
    monkeypatch.setattr(served.application.workers, "lease", lambda: old)
    ready = client.as_(None).get("/readyz")
    assert (ready.status, ready.json["ready"]) == (200, True)
    assert ready.json["lease"] == {"epoch": 7, "age_seconds": 9.5, "left_seconds": -4.5}
    assert ready.json["checks"][-1] == {
        "name": "lease",
        "ok": False,
        "detail": "there is no leader",
    }


def test_the_document_is_made_once_and_sent_once(client: Client) -> None:
    anyone = client.as_(None)
    first = anyone.get("/openapi.json")
    etag = first.headers["etag"]
    assert anyone.get("/openapi.json", **{"If-None-Match": f'W/"x", {etag}'}).status == 304
    packed = anyone.get("/openapi.json", **{"Accept-Encoding": "gzip"})
    assert packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == first.body
