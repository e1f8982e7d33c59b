"""The protocol's inspector, on its command line, against `tsuzuki mcp` on stdio: another client than the SDK's."""

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.mcp_runs import run_workspace, sources_of
from support.mcp_session import server_command, server_environ
from support.node_packages import DEFINITIONS, environment, node_program
from tsuzuki.mcp.presets import presets

INSPECTOR = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
INSPECTOR_SECONDS = 120
ERAS = ["legacy", "modern"]

full = [pytest.mark.full, pytest.mark.timeout(600)]


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    folder = tmp_path_factory.mktemp("inspected")
    with run_workspace(sources_of(folder)):
        yield folder


def inspect(workspace: Path, era: str, method: str, *arguments: str) -> dict[str, Any]:
    server = server_command("--root", str(workspace), "--tools", "all")
    options = ["--protocol-era", era, "--format", "json", "--method", method, *arguments]
    done = subprocess.run(
        [*node_program(INSPECTOR), "--cli", *server, *options],
        cwd=workspace,
        env={**server_environ(workspace / "indexes"), **environment(HOME=str(workspace))},
        capture_output=True,
        text=True,
        check=False,
        timeout=INSPECTOR_SECONDS,
    )
    assert done.returncode == 0, done.stderr
    answer: dict[str, Any] = json.loads(done.stdout)["result"]
    return answer


@pytest.mark.parametrize("era", [pytest.param(era, marks=full) for era in ERAS])
def test_it_lists_the_tools_and_finds_no_error_in_them(workspace: Path, era: str) -> None:
    listed = inspect(workspace, era, "tools/list", "--strict")["tools"]
    assert [one["name"] for one in listed] == [
        one.name for one in presets()["all"].tools if one.is_listed
    ]


@pytest.mark.parametrize("era", [pytest.param(era, marks=full) for era in ERAS])
def test_it_calls_a_tool(workspace: Path, era: str) -> None:
    answer = inspect(workspace, era, "tools/call", "--tool-name", "job_list")
    assert "print: command, manual" in answer["content"][0]["text"]
    assert answer["structuredContent"]["total"] == 3


@pytest.mark.full
@pytest.mark.timeout(600)
def test_it_follows_a_run_as_a_task_to_its_result(workspace: Path) -> None:
    arguments = ("--tool-name", "run_start", "--tool-args-json", '{"job": "print"}')
    answer = inspect(workspace, "modern", "tools/call", *arguments)
    assert answer["structuredContent"]["state"] == "SUCCEEDED"


def test_what_is_installed_is_pinned_by_hash_and_from_no_named_host() -> None:
    lock = json.loads((DEFINITIONS / "node" / "package-lock.json").read_text(encoding="utf-8"))
    packages = {name: one for name, one in lock["packages"].items() if name}
    assert all(one["integrity"].startswith("sha512-") for one in packages.values())
    assert not [name for name, one in packages.items() if "resolved" in one]
