"""The protocol's conformance suite against our server: what a revision requires passes; each exception has its reason.

`make test-full` runs it. The suite calls tools of fixed names; a server of the test serves them, made of our parts.
"""

import json
import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from conformance_server import conformance_app
from ruamel.yaml import YAML

from support.mcp_runs import run_workspace, sources_of
from support.mcp_session import server_command, server_environ
from support.node_packages import environment, node_program
from support.served_app import served
from tsuzuki.mcp.tool import ServerState

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]

SUITE = "@modelcontextprotocol/conformance"
SUITE_SECONDS = 600
REQUIRED_COUNT = 37
Checks = dict[str, list[dict[str, Any]]]

OPTIONAL = [
    "http-custom-header-server-validation",
    "http-header-validation",
    "json-schema-2020-12",
    "tasks-capability-negotiation",
    "tasks-dispatch-and-envelope",
    "tasks-lifecycle",
    "tasks-mrtr-composition",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-request-state-removal",
    "tasks-required-task-error",
    "tasks-wire-fields",
]
"""Not required by 2026-07-28, but kept."""

WITHOUT_A_CHECK = {"tasks-status-notifications": "the suite skips it until it is rewritten"}

NOT_OFFERED = {
    "elicitation-sep1034-defaults": "no tool asks its client for input",
    "elicitation-sep1330-enums": "no tool asks its client for input",
    "logging-set-level": "logging is deprecated, and the server does not log to clients",
    "resources-subscribe": "there are no resources to follow",
    "resources-unsubscribe": "there are no resources to follow",
    "server-sse-polling": "a stream that broke is not resumed; a call is repeated",
    "tools-call-elicitation": "no tool asks its client for input",
    "tools-call-sampling": "no tool asks its client's model",
    "tools-call-with-logging": "logging is deprecated, and the server does not log to clients",
}
"""Of 2025-11-25: what the server does not offer, and does not announce. None is excused without a reason."""

ON_THE_PRODUCT = {
    "2025-11-25": ["server-initialize", "server-session-lifecycle", "ping", "tools-list"],
    "2026-07-28": [
        "caching",
        "dns-rebinding-protection",
        "http-header-validation",
        "server-sse-multiple-streams",
        "server-stateless",
        "tools-list",
    ],
}
"""Scenarios that need no tool of the suite's own, or say which check does."""

NEEDS_A_FIXTURE = re.compile(
    r"^Not testable: |Method not found$|^Server executed 'test_missing_capability'"
)
"""A check that calls what the product does not have. A tool that it does not have is an answer that models can read,
not an error of the protocol, so the suite takes it for executed."""


def run_suite(url: str, folder: Path, *arguments: str) -> Checks:
    command = [*node_program(f"{SUITE}/dist/index.js"), "server", "--url", url]
    subprocess.run(
        [*command, "--output-dir", str(folder), *arguments],
        env=environment(),
        check=False,  # what failed stands in the checks
        capture_output=True,
        timeout=SUITE_SECONDS,
    )
    found = {}
    for file in folder.glob("server-*/checks.json"):
        scenario = re.sub(r"-\d{4}-\d\d-\d\dT[-\dZ]+$", "", file.parent.name)
        found[scenario.removeprefix("server-")] = json.loads(file.read_text(encoding="utf-8"))
    return found


def required(revision: str) -> list[str]:
    requirements = Path(node_program(f"{SUITE}/requirements/{revision}.yaml")[1])
    return list(YAML(typ="safe").load(requirements)["server"])


def problems(checks: Checks, scenarios: list[str]) -> list[str]:
    found = [f"{one}: not run" for one in scenarios if one not in checks]
    for scenario in scenarios:
        ours = checks.get(scenario, [])
        if not any(check["status"] == "SUCCESS" for check in ours):
            found.append(f"{scenario}: nothing was checked")
        found += [f"{scenario}: {words}" for words in failures(ours)]
    return found


def failures(checks: list[dict[str, Any]]) -> list[str]:
    return [
        str(check.get("errorMessage"))
        for check in checks
        if check["status"] not in ("SUCCESS", "INFO", "SKIPPED")
    ]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A workspace with an engine, and the suite's tools beside ours."""
    sources: Mapping[str, Any] = sources_of(tmp_path_factory.mktemp("conformance"))
    state = ServerState(environ=sources["environ"], cwd=sources["cwd"], sources=sources)
    with run_workspace(sources):
        with served(conformance_app(state)) as url:
            yield url
        state.close()


def test_all_that_2026_07_28_requires_passes_and_tasks_too(url: str, tmp_path: Path) -> None:
    checks = run_suite(url, tmp_path, "--requirements", "2026-07-28")
    wanted = required("2026-07-28")
    assert len(wanted) == REQUIRED_COUNT
    assert problems(checks, wanted + OPTIONAL) == []
    assert sorted(checks) == sorted([*wanted, *OPTIONAL, *WITHOUT_A_CHECK])


def test_all_that_the_older_handshake_requires_passes_where_it_is_offered(
    url: str, tmp_path: Path
) -> None:
    checks = run_suite(url, tmp_path, "--requirements", "2025-11-25")
    wanted = [one for one in required("2025-11-25") if one not in NOT_OFFERED]
    assert problems(checks, wanted) == []
    passing = [one for one in NOT_OFFERED if not failures(checks[one])]
    assert not passing, "no longer an exception"


@pytest.fixture(scope="module")
def product_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """`tsuzuki mcp --http` as users start it."""
    folder = tmp_path_factory.mktemp("product")
    with subprocess.Popen(
        server_command(
            "--root", str(folder), "--tools", "all", "--http", "--no-token", "--port", "0"
        ),
        cwd=folder,
        env=server_environ(folder / "indexes"),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        found = re.search(r"http://\S+/mcp", process.stderr.readline())
        assert found
        yield found[0]
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=120)


@pytest.mark.parametrize("revision", ON_THE_PRODUCT)
def test_the_product_itself_passes_what_needs_no_fixture(
    product_url: str, tmp_path: Path, revision: str
) -> None:
    for scenario in ON_THE_PRODUCT[revision]:
        folder = tmp_path / scenario
        options = ("--scenario", scenario, "--spec-version", revision)
        checks = run_suite(product_url, folder, *options)
        (ours,) = checks.values()
        assert any(check["status"] == "SUCCESS" for check in ours)
        assert [one for one in failures(ours) if not NEEDS_A_FIXTURE.search(one)] == []
