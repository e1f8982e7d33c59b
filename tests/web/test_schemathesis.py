"""Generated requests, one by one and along the links: no server error, no answer that the document does not
describe, no wrong request taken, no right one refused, nothing without credentials.

`make test` has a small fixed budget of requests; `make test-full` runs the program of schemathesis, with all its
phases, as each caller, for a fixed time.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.generation.stateful.control import TransitionController

from support import schemathesis_hooks as HOOKS  # noqa: N812 -- also registered by its name below
from support.web_client import Served, served_application
from tsuzuki.web.links import LINKS

DOCUMENT = Path(__file__).parents[2] / "docs" / "reference" / "openapi.json"
CALLERS = (None, "viewer", "operator", "admin")
"""The one with the fewest rights first: what it is refused is still there for the next."""

REFUSED_BY_MEANING = {
    "create_job": "a definition is checked as in the file",
    "edit_job": "a definition is checked as in the file",
    "start_run": "a number of free JSON can be too large",
    "emit_event": "a number of free JSON can be too large",
    "add_user": "a password can be too easy to guess",
    "set_password": "a password can be too easy to guess",
    "set_up": "a password can be too easy to guess",
    "create_token": "a role has not every scope",
    "set_setting": "each setting has bounds of its own, and some depend on others",
    "preview_bulk": "a filter can exclude all that it asks for",
    "list_runs": "a filter can exclude all that it asks for",
    "list_books": "one filter needs another",
    "list_feed_items": "the name of a feed has a form",
    "commit_statistics": "the last day can be before the first",
    "export_commits": "the last day can be before the first",
    "add_target": "a reference can name a folder, which is refused here",
    "remove_target": "a reference can name no project",
    "search_code": "patterns of paths have a form",
    "read_code": "places in files have a form",
    "code_references": "names and patterns have a form",
    "receive_webhook": "the body of a delivery is signed",
}
"""What a schema cannot say. All other routes take every request that is right by the document."""

CONFIG = """\
[generation]
allow-x00 = false  # no text of a request has a NUL; how it is refused is tested apart
[checks.positive_data_acceptance]
# 400: a cursor is signed, and If-Match has a version; 412 and 428: that version.
expected-statuses = ["2xx", 400, 401, 403, 404, 409, 412, 428, 429]
[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 406, 409, 412, 413, 415, 422, 428, 429]
[checks.object_level_authorization]
enabled = false  # all callers of a role see the same
[[operations]]
include-operation-id = "run_logs_stream"
enabled = false  # it ends with its run, and none runs here
[[operations]]
include-operation-id = "stream"
enabled = false  # it does not end by itself
[[operations]]
include-operation-id = "sync_projects"
enabled = false  # it asks a service that is not here
[[operations]]
include-operation-id = "wait_for_run"
parameters = { seconds = 0 }
[[operations]]
include-operation-id = "start_run"
parameters = { prefer = "respond-async" }
""" + "".join(
    f"""\
[[operations]]
include-operation-id = "{operation}"
checks.positive_data_acceptance.enabled = false  # {reason}
"""
    for operation, reason in REFUSED_BY_MEANING.items()
)
SCHEMA = schemathesis.openapi.from_path(str(DOCUMENT), config=schemathesis.Config.from_str(CONFIG))
BUDGET = settings(
    database=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)
EXAMPLES = {GenerationMode.POSITIVE: 2, GenerationMode.NEGATIVE: 1}
WALKS = 4
STEPS = 10
TIMEOUT_SECONDS = 30
PROGRAM_SECONDS = 45
"""For each caller, in `make test-full`."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with served_application(tmp_path_factory.mktemp("workspace")) as served:
        served.application.jobs.define("hello", {"command": ["true"]})
        yield served


def call_options(served: Served, caller: str | None) -> dict[str, Any]:
    headers = {"Sec-Fetch-Site": "same-origin"}  # generated cookies are those of our own page
    headers |= {"Authorization": f"Bearer {caller}"} if caller else {}
    return {"base_url": served.server.url, "headers": headers, "timeout": TIMEOUT_SECONDS}


@pytest.mark.slow
def test_every_answer_is_as_the_document_says(served: Served) -> None:
    sent = 0
    for result in SCHEMA.get_all_operations():
        operation = result.ok()
        if not SCHEMA.config.operations.get_for_operation(operation).enabled:
            continue
        for mode in GenerationMode:

            @settings(BUDGET, max_examples=EXAMPLES[mode])
            @given(case=operation.as_strategy(mode))
            def check(case: schemathesis.Case, callers: list[str | None]) -> None:
                nonlocal sent
                while callers:
                    sent += 1
                    case.call_and_validate(**call_options(served, callers.pop(0)))
                callers.append("admin")

            with suppress(Unsatisfiable):  # a route without parameters has no invalid ones
                check(callers=[*CALLERS])
    assert sent > 700


PASSWORD = "correct horse battery"
NUMBERS = count(1)
MADE: dict[str, Callable[[], dict[str, Any]]] = {
    "create_job": lambda: {"name": f"job-{next(NUMBERS)}", "definition": {"command": ["true"]}},
    "edit_job": lambda: {"definition": {"command": ["true"], "priority": 3}},
    "preview_bulk": lambda: {"filter": {}},
    "create_token": lambda: {"name": f"token-{next(NUMBERS)}", "role": "viewer", "scopes": None},
    "add_user": lambda: {"name": f"user-{next(NUMBERS)}", "password": PASSWORD},
    "set_password": lambda: {"password": PASSWORD},
}
"""What is put into generated bodies: few of them are right in all that a schema cannot say."""

LINKS_OF_THE_DOCUMENT = """\
[phases.stateful.inference]
algorithms = []
"""
"""No guessed ones, which put the null of a missing id into a path."""

WALK_CONFIG = LINKS_OF_THE_DOCUMENT + CONFIG.replace("allow-x00", 'mode = "positive"\nallow-x00', 1)
"""Only right requests: no link leads on from one that is refused."""

FOLLOWED_MIN = 4
"""How many routes must have been successful on the way."""


def linked_document() -> dict[str, Any]:
    """The document with the routes that links lead from or to; those of collectors need more than a request."""
    document: dict[str, Any] = json.loads(DOCUMENT.read_text(encoding="utf-8"))
    linked = {name for link in LINKS for name in (link.source, link.target)}
    kept: dict[str, Any] = {}
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            of_collector = {"commits", "code"} & set(operation["tags"])
            if operation["operationId"] in linked and not of_collector:
                kept.setdefault(path, {})[method] = operation
    return {**document, "paths": kept}


def is_maker(label: str) -> bool:
    """Whether the route needs nothing that was made before: no part of its path is a parameter."""
    return "{" not in label


class StartsAtMakers(TransitionController):
    """All other routes are reached along the links only: an id that is made up is hardly ever known."""

    def allow_root_transition(self, source: str, bundles: Any) -> bool:
        return is_maker(source) and bool(super().allow_root_transition(source, bundles))


def test_what_is_made_is_found_changed_and_gone_along_the_links(served: Served) -> None:
    schema = schemathesis.openapi.from_dict(
        linked_document(), config=schemathesis.Config.from_str(WALK_CONFIG)
    )
    successful: set[str] = set()

    class Walk(schema.as_state_machine()):  # type: ignore[misc] -- made from the document
        def __init__(self) -> None:
            super().__init__()
            self.control = StartsAtMakers(
                self._transitions, {label for label in self._root_labels if is_maker(label)}
            )

        def get_call_kwargs(self, _case: schemathesis.Case) -> dict[str, Any]:
            return call_options(served, "admin")

        def before_call(self, case: schemathesis.Case) -> None:
            made = MADE.get(case.operation.definition.raw["operationId"])
            if made is not None and isinstance(case.body, dict):
                case.body.update(made())
            if "prefer" in (case.headers or ()):
                case.headers["prefer"] = "respond-async"  # no engine is here that ends a run

        def after_call(self, response: Any, case: schemathesis.Case) -> None:
            super().after_call(response, case)
            if response.status_code < 300:
                successful.add(case.operation.definition.raw["operationId"])

    Walk.run(settings=settings(BUDGET, max_examples=WALKS, stateful_step_count=STEPS))
    assert len(successful) >= FOLLOWED_MIN, successful


@pytest.mark.full
@pytest.mark.timeout(4 * PROGRAM_SECONDS)
@pytest.mark.parametrize("caller", CALLERS)
def test_many_requests_of_every_phase(served: Served, caller: str | None, tmp_path: Path) -> None:
    config = tmp_path / "schemathesis.toml"
    config.write_text(
        f'hooks = "{HOOKS.__name__}"\n{LINKS_OF_THE_DOCUMENT}{CONFIG}', encoding="utf-8"
    )
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", str(config)]
    command += ["run", str(DOCUMENT), "--url", served.server.url]
    command += ["--max-time", str(PROGRAM_SECONDS), "--no-shrink", "--seed", "1"]
    command += [f"--header=Authorization: Bearer {caller}"] if caller else []
    environ = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(
        command, cwd=tmp_path, env=environ, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
