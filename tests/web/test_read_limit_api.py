"""A request that asks for too much is answered, in time, with how to ask for less."""

import pytest

from support.web_client import Served
from tsuzuki.services.runs import RunFilter
from tsuzuki.web import route


def test_a_request_that_takes_too_long_says_narrow_the_window(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    database = served.application.runs._database

    def search(wanted: RunFilter) -> None:
        with database.read() as connection:
            connection.exec_driver_sql(
                "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s"
                f" WHERE n < 1000000000) SELECT count(*), {wanted.limit} FROM s"
            )

    monkeypatch.setattr(route, "READ_SECONDS", 0.05)
    monkeypatch.setattr("tsuzuki.services.runs.Runs.search", lambda _runs, wanted: search(wanted))
    answer = served.client.get("runs")
    assert (answer.status, answer.code) == (422, "read_timed_out")
    assert "Narrow the selection" in answer.json["hint"]
