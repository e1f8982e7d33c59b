"""`tsuzuki web` and `tsuzuki up` serve the API, and stop in good order."""

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from urllib.request import Request, urlopen

import pytest

from support.web_process import serving
from support.workspace import Workspace, process_environment

WAIT_SECONDS = 120


@pytest.fixture
def taken() -> Iterator[str]:
    """An address that another program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.slow
def test_up_serves_the_api_beside_its_engine(workspace: Workspace) -> None:
    with serving(workspace.folder, "up", "--listen", "127.0.0.1:0") as (process, url):
        headers = {"Prefer": "wait=30"}
        start = Request(f"{url}/api/v1/jobs/hello/runs", method="POST", headers=headers)
        with urlopen(start, timeout=WAIT_SECONDS) as answer:
            run = json.load(answer)
        assert run["state"] == "SUCCEEDED"
        with urlopen(f"{url}/metrics", timeout=WAIT_SECONDS) as answer:
            assert b"tsuzuki_runs_ended_total" in answer.read()
        with urlopen(f"{url}/readyz", timeout=WAIT_SECONDS) as answer:
            ready = json.load(answer)
        assert {check["name"]: check["ok"] for check in ready["checks"]}["lease"]
        assert ready["lease"]["left_seconds"] > 0
        workspace.ok("job", "disable", "hello")
        process.send_signal(signal.SIGTERM)
        assert process.wait(WAIT_SECONDS) == 0


@pytest.mark.slow
def test_web_serves_alone_and_ends_with_ctrl_c(workspace: Workspace) -> None:
    with serving(workspace.folder, "web", "--listen", "127.0.0.1:0") as (process, url):
        with urlopen(f"{url}/api/v1/jobs", timeout=WAIT_SECONDS) as answer:
            assert [job["name"] for job in json.load(answer)["items"]] == ["hello"]
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_SECONDS) == 130


def test_an_address_in_use_is_told(workspace: Workspace, taken: str) -> None:
    for command in ("web", "up"):
        error = workspace.forked(command, "--listen", taken, "--output", "json").error
        assert error["code"] == "port_in_use"
        assert "--listen HOST:PORT" in error["hint"]
        assert "--no-web" not in error["hint"]  # which `web` does not have


@pytest.mark.parametrize("address", ["127.0.0.1:x", "127.0.0.1:70000", "[::1]:x", "9000"])
def test_a_wrong_address_is_told(workspace: Workspace, address: str) -> None:
    ended = workspace.forked("web", "--listen", address, "--output", "json")
    assert (ended.code, ended.error["code"]) == (2, "listen")


def test_other_machines_are_not_let_in_before_there_is_a_user(workspace: Workspace) -> None:
    refused = workspace.run("web", "--listen", "0.0.0.0:0")
    assert (refused.code, "--setup" in refused.err) == (3, True)
    assert "would reach 0.0.0.0:0" in refused.err
    refused = workspace.run("up", "--listen", "0.0.0.0:0")
    assert (refused.code, "tsuzuki user add" in refused.err) == (3, True)
    for command in ("web", "up"):  # a proxy brings others to this machine's own address
        refused = workspace.run(command, "--trust-proxy", "127.0.0.1", "--listen", "127.0.0.1:0")
        assert (refused.code, "--setup" in refused.err) == (3, True)


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--quiet"], ["--output", "json"]], ids=" ".join)
def test_setup_prints_a_code_once_there_is_no_user(workspace: Workspace, words: list[str]) -> None:
    with subprocess.Popen(
        [sys.executable, "-m", "tsuzuki", "web", "--setup", "--listen", "127.0.0.1:0", *words],
        cwd=workspace.folder,
        env=process_environment({}),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr
        wanted = "setup_code" if "json" in words else "first admin"
        line = next(line for line in process.stderr if wanted in line)
        assert "json" not in words or json.loads(line)["setup_code"]
        process.kill()
