"""`tsuzuki sandbox` as a person starts it: a real process, asked by a real client."""

import json
import os
import signal
import smtplib
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import click
import feedparser
import gitlab
import pytest
import requests

from support.git_histories import straight
from support.workspace import Workspace
from tsuzuki.cli.invocation import Invocation
from tsuzuki.cli.root import ROOT
from tsuzuki.cli.serve import sandbox as command
from tsuzuki.sandbox.stand_in_kind import StandInKind

INSTALLED = Path(sys.executable).with_name("tsuzuki")
SERVICES = ("gitlab", "books", "mail", "feeds", "gemini", "openai", "mastodon")
ANY_PORT = [word for name in SERVICES for word in (f"--{name}-port", "0")]
VARIABLES = 18


@contextmanager
def sandbox(folder: Path, *options: str) -> Iterator[tuple[subprocess.Popen[str], dict[str, str]]]:
    """The process, and the variables it asks for."""
    command = [INSTALLED, "sandbox", *ANY_PORT, "--output", "jsonl", *options]
    environ = {"PATH": os.environ["PATH"], "TMPDIR": str(folder)}
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, cwd=folder, env=environ, bufsize=1
    )
    assert process.stdout is not None
    try:
        rows = [json.loads(process.stdout.readline()) for _ in range(VARIABLES)]
        yield process, {row["variable"]: row["value"] for row in rows}
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def client_of(variables: dict[str, str]) -> gitlab.Gitlab:
    return gitlab.Gitlab(
        variables["TSUZUKI_COMMITS_GITLAB_URL"],
        private_token=variables["TSUZUKI_COMMITS_GITLAB_TOKEN"],
    )


def test_the_demo_can_be_collected_and_leaves_nothing_behind(tmp_path: Path) -> None:
    with sandbox(tmp_path) as (process, variables):
        client = client_of(variables)
        projects = client.projects.list(get_all=True)
        assert {project.path for project in projects} == {"atlas", "harbour", "lantern"}
        atlas = client.projects.get("demo/atlas")
        assert {branch.name for branch in atlas.branches.list(get_all=True)} == {
            "main",
            "release/1.0",
            "fix/#42",
            "topic",
        }
        assert len(atlas.commits.list(ref_name="main", get_all=True, per_page=100)) > 600
        process.send_signal(signal.SIGINT)
        assert process.wait(120) == 130
    assert list(tmp_path.iterdir()) == []


def test_repositories_of_ones_own_are_served(tmp_path: Path) -> None:
    straight(tmp_path / "mine" / "team" / "tool.git", 3)
    with sandbox(tmp_path, "--repositories", "mine") as (process, variables):
        tool = client_of(variables).projects.get("team/tool")
        assert len(tool.commits.list(get_all=True)) == 3
        process.send_signal(signal.SIGTERM)
        assert process.wait(120) == 0


def test_books_are_listed_and_mail_is_taken(tmp_path: Path) -> None:
    with sandbox(tmp_path) as (_, variables):
        url = f"{variables['TSUZUKI_BOOKS_BASE_URL']}/volumes?q=python&maxResults=3"
        found = requests.get(url, params={"key": variables["TSUZUKI_BOOKS_API_KEY"]}, timeout=120)
        assert len(found.json()["items"]) == 3
        sender, recipient = (variables[f"TSUZUKI_BOOKS_MAIL_{who}"] for who in ("FROM", "TO"))
        host, port = (variables[f"TSUZUKI_BOOKS_MAIL_{part}"] for part in ("HOST", "PORT"))
        with smtplib.SMTP(host, int(port), timeout=120) as client:
            assert client.sendmail(sender, [recipient], "Subject: hello\n\nhello") == {}


def test_feeds_are_read_and_changed(tmp_path: Path) -> None:
    with sandbox(tmp_path) as (_, variables):
        japanese = variables["SANDBOX_FEED_JAPANESE"]
        assert len(feedparser.parse(requests.get(japanese, timeout=120).content).entries) == 6
        control = japanese.replace("/news.rdf", "/_sandbox/articles")
        new = {"feed": "/news.rdf", "title": "新しい橋", "text": "橋が開通しました。"}
        assert requests.post(control, json=new, timeout=120).status_code == 201
        found = feedparser.parse(requests.get(japanese, timeout=120).content).entries
        assert (len(found), found[0].title) == (7, "新しい橋")


def test_models_answer_and_posts_are_taken(tmp_path: Path) -> None:
    with sandbox(tmp_path) as (_, variables):
        gemini = requests.post(
            f"{variables['SANDBOX_GEMINI_URL']}/v1beta/models/gemini-flash-lite-latest:generateContent",
            headers={"x-goog-api-key": variables["SANDBOX_GEMINI_KEY"]},
            json={"contents": [{"parts": [{"text": "A bridge opens."}]}]},
            timeout=120,
        ).json()
        completion = requests.post(
            f"{variables['SANDBOX_OPENAI_URL']}/chat/completions",
            headers={"Authorization": f"Bearer {variables['SANDBOX_OPENAI_KEY']}"},
            json={
                "model": "sandbox-model",
                "messages": [{"role": "user", "content": "A bridge opens."}],
            },
            timeout=120,
        ).json()
        texts = {
            gemini["candidates"][0]["content"]["parts"][0]["text"],
            completion["choices"][0]["message"]["content"],
        }
        assert texts == {"A bridge opens."}
        posted = requests.post(
            f"{variables['SANDBOX_MASTODON_URL']}/api/v1/statuses",
            headers={"Authorization": f"Bearer {variables['SANDBOX_MASTODON_TOKEN']}"},
            data={"status": "A bridge opens."},
            timeout=120,
        ).json()
        assert posted["content"] == "<p>A bridge opens.</p>"


@pytest.mark.parametrize("option", [f"--{name}-port" for name in SERVICES])
def test_a_port_that_is_taken_is_told(workspace: Workspace, option: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        told = workspace.run("sandbox", *ANY_PORT, option, port, "-o", "json")
    assert told.code == 6
    assert port in told.error["message"]
    assert option in told.error["hint"]


@pytest.mark.parametrize("folder", ["nowhere", "tsuzuki.yaml"])
def test_what_is_no_folder_is_refused(workspace: Workspace, folder: str) -> None:
    assert workspace.run("sandbox", "--repositories", folder).code == 4


def test_stand_ins_of_any_collector_have_options(monkeypatch: pytest.MonkeyPatch) -> None:
    place = click.Option(["--place"])
    parts = {
        "first": (kind("wind", usual_port=9002), kind("sky", usual_port=9001, options=(place,))),
        "second": (kind("sky", usual_port=9000),),
    }
    monkeypatch.setattr(command, "collector_parts", lambda _: parts)
    context = click.Context(command.sandbox, **ROOT.context_settings)
    options = [one.opts[0] for one in command.sandbox.get_params(context)]
    assert options[:3] == ["--place", "--sky-port", "--wind-port"]


def test_without_its_library_a_stand_in_is_left_out(capsys: pytest.CaptureFixture[str]) -> None:
    needy = kind("wind", usual_port=9002, requirement="weather[sandbox]")
    with ExitStack() as running:
        assert command._started(Invocation(), needy, {"wind_port": 0}, running) == {}
    assert "pip install 'weather[sandbox]'" in capsys.readouterr().err


def test_a_missing_module_that_nothing_installs_is_a_bug() -> None:
    with ExitStack() as running, pytest.raises(ModuleNotFoundError):
        command._started(Invocation(), kind("wind", usual_port=9002), {"wind_port": 0}, running)


def kind(
    name: str,
    *,
    usual_port: int,
    options: tuple[click.Option, ...] = (),
    requirement: str | None = None,
) -> StandInKind:
    """A stand-in whose library is not installed."""
    return StandInKind(
        name=name,
        title=name,
        usual_port=usual_port,
        start="not_installed:start",
        options=options,
        requirement=requirement,
    )
