"""The distribution in examples/statuses, built, installed and run through its entry point."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest

from support.example_collector import install_example
from support.workspace import Workspace
from tsuzuki.collectors.feeds.sandbox.mastodon import TOKEN, mastodon
from tsuzuki.sandbox.faults import StandInFault
from tsuzuki.sandbox.server import StandIn

PAGE = 5


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_example(tmp_path_factory.mktemp("example"))


@pytest.fixture
def server() -> Iterator[StandIn]:
    with StandIn(mastodon()) as server:
        yield server


def ask(server: StandIn, path: str, body: Any = None) -> Any:
    headers = {"Authorization": f"Bearer {TOKEN}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    with urlopen(Request(server.url + path, data=data, headers=headers)) as answer:
        return json.loads(answer.read())


def post(server: StandIn, count: int) -> None:
    for number in range(count):
        ask(server, "/api/v1/statuses", {"status": f"Status number {number} of {count}"})


def test_the_example_collects_page_after_page_and_continues_where_it_failed(
    installed: Path, server: StandIn, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path, capsys)
    account = ask(server, "/api/v1/accounts/verify_credentials")["id"]
    workspace.file.write_text(
        f"version: 1\nstatuses: {{base_url: '{server.url}', page_size: {PAGE}}}\n"
        f"jobs:\n  news: {{type: statuses, account: '{account}'}}\n"
    )

    def command(*words: str, code: int = 0) -> Any:
        ended = workspace.forked(*words, "--output", "json", PYTHONPATH=str(installed))
        assert ended.code == code, ended.err
        return ended.data

    def run(*, code: int = 0) -> Any:
        asked = command("job", "run", "news")
        command("run-due", code=code)
        return command("run", "show", str(asked["run_id"]))

    post(server, 12)
    server.faults.add(StandInFault(path="*/statuses?*", status=503, skip=1))
    failed = run(code=1)
    assert "source_unwell" in failed["error"]
    assert len(command("statuses", "ls")) == PAGE
    assert run()["result"]["kept"] == 12 - PAGE
    assert run()["result"]["kept"] == 0
    post(server, 1)
    assert run()["result"]["kept"] == 1
    listed = command("statuses", "ls", "--job", "news")
    assert len({row["id"] for row in listed}) == len(listed) == 13
    assert command("config", "check") is not None


def test_a_wrong_account_is_told_with_its_place(
    installed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace = Workspace(tmp_path, capsys)
    workspace.file.write_text("version: 1\njobs:\n  news: {type: statuses, account: '@ann'}\n")
    ended = workspace.forked("config", "check", PYTHONPATH=str(installed))
    assert ended.code == 3
    assert "must be the number of an account" in ended.err
    assert "tsuzuki.yaml:3" in ended.err
