"""`tsuzuki web` and `tsuzuki up` serve the API, and stop in good order."""

import json
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from urllib.parse import urlencode, urlsplit
from urllib.request import HTTPCookieProcessor, Request, build_opener, urlopen

import pytest

from support.daemons import eventually
from support.redis_server import free_port
from support.terminal import at_terminal
from support.web_process import serving
from support.workspace import Workspace, process_environment
from tsuzuki.model.access import Role
from tsuzuki.wiring.application import opened

WAIT_SECONDS = 120


@pytest.fixture
def taken() -> Iterator[str]:
    """An address that another program listens on."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        yield f"127.0.0.1:{listener.getsockname()[1]}"


@contextmanager
def another_program(answer: bytes) -> Iterator[str]:
    """The address of a server that answers every request like this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()
            self.wfile.write(answer)

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


@pytest.mark.slow
def test_up_serves_the_api_beside_its_engine(workspace: Workspace) -> None:
    with serving(workspace.folder, "up", "--listen", "127.0.0.1:0") as (process, url):
        token = workspace.ok("token", "create", "test", "--role", "operator").out.strip()
        headers = {"Prefer": "wait=30", "Authorization": f"Bearer {token}"}
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
        token = workspace.ok("token", "create", "test").out.strip()
        listed = Request(f"{url}/api/v1/jobs", headers={"Authorization": f"Bearer {token}"})
        with urlopen(listed, timeout=WAIT_SECONDS) as answer:
            assert [job["name"] for job in json.load(answer)["items"]] == ["hello"]
        process.send_signal(signal.SIGINT)
        assert process.wait(WAIT_SECONDS) == 130


def test_an_address_in_use_is_told(workspace: Workspace, taken: str) -> None:
    error = workspace.forked("web", "--listen", taken, "--output", "json").error
    assert error["code"] == "port_in_use"
    assert "--listen HOST:PORT" in error["hint"]
    assert "--no-web" not in error["hint"]  # which `web` does not have


@pytest.mark.parametrize("answer", [b"{}", b"not JSON", b'{"installation": "of another"}'])
def test_an_engine_does_not_start_where_another_program_is_served(
    workspace: Workspace, answer: bytes
) -> None:
    with another_program(answer) as taken:
        refused = workspace.forked("up", "--listen", taken, "--output", "json")
    assert (refused.code, refused.error["code"]) == (6, "port_in_use")
    assert "--no-web" in refused.error["hint"]
    assert taken in refused.error["message"]


@pytest.mark.slow
def test_an_engine_does_not_start_where_another_database_is_served(
    workspace: Workspace, tmp_path_factory: pytest.TempPathFactory
) -> None:
    other = tmp_path_factory.mktemp("other")
    (other / "tsuzuki.yaml").write_text(workspace.file.read_text())
    with serving(other, "web", "--listen", "127.0.0.1:0") as (_, url):
        refused = workspace.forked(
            "up", "--listen", url.removeprefix("http://"), "--output", "json"
        )
    assert (refused.code, refused.error["code"]) == (6, "port_in_use")


@pytest.mark.slow
def test_a_second_engine_on_the_database_starts_without_a_page_and_names_the_first_ones(
    workspace: Workspace,
) -> None:
    with serving(workspace.folder, "web", "--listen", "127.0.0.1:0") as (_, url):
        address = url.removeprefix("http://")
        with serving(workspace.folder, "up", "--listen", address) as (second, named):
            assert named == url
            workspace.ok("job", "run", "hello", "--watch")
            second.send_signal(signal.SIGTERM)
            assert second.wait(WAIT_SECONDS) == 0
        assert is_listening(address)


@pytest.mark.parametrize("address", ["127.0.0.1:x", "127.0.0.1:70000", "[::1]:x", "9000"])
def test_a_wrong_address_is_told(workspace: Workspace, address: str) -> None:
    ended = workspace.forked("web", "--listen", address, "--output", "json")
    assert (ended.code, ended.error["code"]) == (2, "listen")


def test_other_machines_are_not_let_in_before_there_is_a_user(workspace: Workspace) -> None:
    refused = workspace.run("web", "--listen", "0.0.0.0:0")
    assert (refused.code, "--setup" in refused.err) == (3, True)
    assert "0.0.0.0:0 is reachable" in refused.err
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


def test_web_link_prints_a_link_for_the_server_at_an_address(workspace: Workspace) -> None:
    usual = workspace.ok("web", "link").out.strip()
    assert usual.startswith("http://127.0.0.1:8420/sign-in/link?token=")
    told = json.loads(workspace.ok("web", "link", "--listen", "[::1]:9000", "--output", "json").out)
    assert told["url"].startswith("http://[::1]:9000/sign-in/link?token=")
    assert told["expires_at"]
    assert usual.partition("=")[2] not in workspace.ok("audit", "ls", "--output", "json").out


def test_no_link_is_created_where_there_are_users(workspace: Workspace) -> None:
    with opened(environ={}, cwd=workspace.folder) as application:
        by = application.principal
        application.users.add("ada", "correct horse battery", role=Role.ADMIN, by=by)
    refused = workspace.run("web", "link", "--output", "json")
    assert (refused.code, refused.error["code"]) == (6, "users_exist")


@pytest.mark.slow
@pytest.mark.parametrize("command", ["web", "up"])
def test_a_link_is_printed_at_a_terminal_and_opens_the_server(
    workspace: Workspace, command: str
) -> None:
    with at_terminal([command, "--listen", "127.0.0.1:0"], workspace.folder) as terminal:
        terminal.expect("^C")
        (link,) = re.findall(r"http://\S+/sign-in/link\?token=\S+", terminal.shown)
        page, _, token = link.partition("?token=")
        form = Request(page, data=urlencode({"token": token}).encode())
        with build_opener(HTTPCookieProcessor()).open(form, timeout=WAIT_SECONDS) as answer:
            assert (answer.status, urlsplit(answer.url).path) == (200, "/")
            assert token not in answer.read().decode()


@pytest.mark.slow
@pytest.mark.parametrize("words", [[], ["--log-format", "json"], ["--quiet"]], ids=" ".join)
def test_what_may_be_kept_as_a_log_has_no_link(workspace: Workspace, words: list[str]) -> None:
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "tsuzuki", "web", "--listen", address, *words]
    with subprocess.Popen(
        command, cwd=workspace.folder, env=process_environment({}), stderr=subprocess.PIPE
    ) as process:
        eventually(lambda: is_listening(address), what="a server", seconds=WAIT_SECONDS)
        process.send_signal(signal.SIGTERM)
        _, written = process.communicate(timeout=WAIT_SECONDS)
    assert b"token=" not in written
    assert (f"tsuzuki web link --listen {address}".encode() in written) is (words == [])


def is_listening(address: str) -> bool:
    with suppress(OSError), urlopen(f"http://{address}/livez", timeout=WAIT_SECONDS):
        return True
    return False
