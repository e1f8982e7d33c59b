"""Generated requests: no server error, and no answer that the OpenAPI document does not describe."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.checks import CHECKS, load_all_checks

from support.web_client import Served, served_application

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
BUDGET = {"admin": 2, "operator": 1, "viewer": 1, None: 1}
"""How many requests of each route and caller, valid and invalid ones. `make test-full` tries more."""

NOT_TRIED = {"run_logs_stream", "stream", "sync_projects", "wait_for_run"}
"""They wait for what does not come here, or ask a service that is not here."""

SCHEMA = schemathesis.openapi.from_path(str(DOCUMENT))
load_all_checks()
CHECKED = [
    CHECKS.get_one(name)
    for name in (
        "not_a_server_error",
        "status_code_conformance",
        "content_type_conformance",
        "response_headers_conformance",
        "response_schema_conformance",
    )
]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_application(tmp_path_factory.mktemp("workspace")) as served:
        served.application.jobs.define("hello", {"command": ["true"]})
        yield served


def examine(served: Served, caller: str | None, examples: int) -> int:
    """Try every route as this caller; how many requests were sent."""
    headers = {"Authorization": f"Bearer {caller}"} if caller else {}
    sent = 0
    for result in SCHEMA.get_all_operations():
        operation = result.ok()
        if operation.definition.raw["operationId"] in NOT_TRIED:
            continue
        for mode in GenerationMode:

            @settings(
                max_examples=examples,
                deadline=None,
                database=None,
                derandomize=True,
                phases=[Phase.generate],
                suppress_health_check=list(HealthCheck),
            )
            @given(case=operation.as_strategy(mode))
            def check(case: schemathesis.Case) -> None:
                nonlocal sent
                sent += 1
                case.call_and_validate(
                    base_url=served.server.url, headers=headers, checks=CHECKED, timeout=30
                )

            with suppress(Unsatisfiable):  # a route without parameters has no invalid ones
                check()
    return sent


@pytest.mark.parametrize("caller", BUDGET)
def test_no_answer_is_undocumented(served: Served, caller: str | None) -> None:
    assert examine(served, caller, BUDGET[caller]) > 30


@pytest.mark.full
@pytest.mark.timeout(900)
@pytest.mark.parametrize("caller", BUDGET)
def test_no_answer_is_undocumented_in_many_requests(served: Served, caller: str | None) -> None:
    assert examine(served, caller, 60) > 1000
