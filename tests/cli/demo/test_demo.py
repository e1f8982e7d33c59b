"""`tsuzuki demo`: alive at once, gone at ^C, and going on at the next start."""

import json
import os
import signal
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import psutil
import pytest
import requests
from ruamel.yaml import YAML

from support.daemons import eventually
from support.workspace import PROGRAM, Workspace, process_environment
from tsuzuki.cli.demo.demo import demo_parts
from tsuzuki.cli.demo.part import DemoPart, DemoServer
from tsuzuki.cli.demo.services import DemoServices
from tsuzuki.cli.demo.workspace import RECORD, DemoWorkspace
from tsuzuki.collectors.books.demo import zone_near_midnight
from tsuzuki.collectors.feeds.sandbox.feed_site.demo import ENGLISH_FEED
from tsuzuki.collectors.feeds.sandbox.feed_site.site import FeedSite
from tsuzuki.model.clock import ManualClock, SystemClock
from tsuzuki.sandbox.exchange import Response
from tsuzuki.sandbox.server import StandIn

NOW = datetime(2026, 11, 17, 12, 30, tzinfo=UTC)
GIT = {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}

PORTS = ("books", "feeds", "gitlab", "mail", "mastodon")


def workspace_in(folder: Path, *, now: datetime = NOW) -> DemoWorkspace:
    return DemoWorkspace(folder, parts=demo_parts().values(), clock=ManualClock(now))


@contextmanager
def demo(folder: Path) -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
    """The process, leader of a session of its own, and what it told."""
    process = subprocess.Popen(
        [PROGRAM, "demo", "demo", "--listen", "127.0.0.1:0", "--output", "jsonl"],
        cwd=folder,
        env=process_environment({"TSUZUKI_CODEINDEX_FOLDER": str(folder / "index")}),
        stdout=subprocess.PIPE,
        encoding="utf-8",
        start_new_session=True,
    )
    assert process.stdout is not None
    try:
        yield process, json.loads(process.stdout.readline())
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def stopped_by_interrupt(process: "subprocess.Popen[str]") -> None:
    """^C goes to the whole group; afterwards no process of the demo is left."""
    others = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    assert process.wait(60) == 0
    assert psutil.wait_procs(others, timeout=30)[1] == []


def ended_states(url: str) -> dict[str, set[str]]:
    """How runs of each job ended so far."""
    states: dict[str, set[str]] = {}
    for run in requests.get(f"{url}/api/v1/runs?limit=100", timeout=30).json()["items"]:
        states.setdefault(run["job_name"], set()).add(run["state"])
    return states


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


def is_alive(states: Mapping[str, set[str]]) -> bool:
    """A job of each kind has done its work; that of books waits for its quota."""
    done = ("news-bot", "commits", "code-index", "greet-visitor")
    return (
        all("SUCCEEDED" in states.get(name, ()) for name in done)
        and states.get("nightly-report", set()) >= {"FAILED", "SUCCEEDED"}
        and "new-books" in states
    )


@pytest.mark.timeout(300)
def test_a_demo_is_alive_leaves_nothing_behind_and_goes_on(tmp_path: Path) -> None:
    with demo(tmp_path) as (process, told):
        url = told["url"]
        eventually(lambda: is_alive(ended_states(url)), what="a run of each job", seconds=90)
        posts = requests.get(_statuses(told), timeout=30).json()
        assert len(posts) >= 4
        books = eventually(
            lambda: requests.get(f"{url}/api/v1/books?limit=1", timeout=30).json()["items"],
            what="a book",
        )
        assert books
        assert requests.get(url, timeout=30).ok
        stopped_by_interrupt(process)
    assert all(map(is_free, told["ports"].values()))
    assert (tmp_path / "demo" / "project" / ".git").is_dir()
    with demo(tmp_path) as (process, again):
        assert again["ports"] == told["ports"]
        eventually(
            lambda: (
                len(
                    requests.get(f"{again['url']}/api/v1/runs?limit=100", timeout=30).json()[
                        "items"
                    ]
                )
                > 7
            ),
            what="further runs",
        )
        assert requests.get(_statuses(again), timeout=30).json() == []
        stopped_by_interrupt(process)


def _statuses(told: Mapping[str, Any]) -> str:
    return f"http://127.0.0.1:{told['ports']['mastodon']}/_sandbox/statuses"


def test_a_workspace_of_a_person_is_left_alone(workspace: Workspace) -> None:
    before = workspace.content()
    ended = workspace.run("demo", ".", "--output", "json")
    assert (ended.code, ended.error["code"]) == (6, "not_a_demo")
    assert workspace.content() == before


def test_a_file_or_database_of_ones_own_is_refused(empty: Workspace) -> None:
    assert empty.run("demo", "--config", "mine.yaml").code == 2
    assert empty.run("demo", "--database-url", "sqlite:///mine.db").code == 2
    assert empty.content() == {}


def test_a_port_of_the_first_start_that_is_taken_now_is_told(empty: Workspace) -> None:
    workspace = workspace_in(empty.folder / "demo")
    workspace.make_folder()
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        workspace.write({**dict.fromkeys(PORTS, 0), "gitlab": port})
        ended = empty.run("demo", "demo", "--output", "json")
    assert (ended.code, ended.error["code"]) == (6, "port_in_use")
    assert f"port {port} " in ended.error["message"]


def test_a_record_that_cannot_be_read_is_told(empty: Workspace) -> None:
    record = empty.folder / "demo" / RECORD
    record.parent.mkdir(parents=True)
    record.write_text("{}")
    ended = empty.run("demo", "demo", "--output", "json")
    assert (ended.code, ended.error["code"]) == (3, "demo_record")


def test_a_start_that_was_interrupted_is_continued_and_what_is_there_stays(tmp_path: Path) -> None:
    workspace = workspace_in(tmp_path)
    workspace.make_folder()
    ports = dict.fromkeys(PORTS, 8421)
    workspace.write(ports)
    workspace.file.unlink()
    (tmp_path / "nightly.sh").write_text("mine")
    later = workspace_in(tmp_path, now=datetime(2027, 1, 1, tzinfo=UTC))
    later.write(ports)
    assert later.record().since == NOW
    assert workspace.file.is_file()
    assert (tmp_path / "nightly.sh").read_text() == "mine"
    assert (tmp_path / ".gitignore").read_text() == "*\n"


def test_the_source_tree_is_one_of_the_demo_also_inside_a_repository(tmp_path: Path) -> None:
    subprocess.run(["git", "init"], cwd=tmp_path, env=GIT, check=True, capture_output=True)
    workspace = workspace_in(tmp_path / "demo")
    workspace.make_folder()
    project = tmp_path / "demo" / "project"
    assert (project / ".git").is_dir()
    assert (project / "lighthouse" / "lamp.py").is_file()
    assert str(project) in workspace.file_text(dict.fromkeys(PORTS, 8421))


def test_a_part_that_was_interrupted_is_made_anew_and_a_complete_one_is_kept(
    tmp_path: Path,
) -> None:
    (tmp_path / "project.unfinished").mkdir()
    workspace = workspace_in(tmp_path)
    workspace.make_folder()
    (tmp_path / "project" / "README.md").write_text("mine")
    workspace.make_folder()
    assert not (tmp_path / "project.unfinished").exists()
    assert (tmp_path / "project" / "README.md").read_text() == "mine"


@pytest.mark.parametrize("hour", range(24))
def test_the_quota_of_the_demo_is_renewed_at_the_next_full_hour(hour: int) -> None:
    local = NOW.replace(hour=hour).astimezone(ZoneInfo(zone_near_midnight(NOW.replace(hour=hour))))
    assert (local.hour, local.minute) == (23, 30)


def test_each_minute_allows_new_calls_and_brings_a_new_article(tmp_path: Path) -> None:
    (tmp_path / "gitlab").mkdir()
    servers = workspace_in(tmp_path).servers()
    with DemoServices(servers, ports=dict.fromkeys(PORTS, 0), clock=SystemClock()) as services:
        site = services.servers["feeds"]
        assert isinstance(site, StandIn)
        news = site.application
        assert isinstance(news, FeedSite)
        before = len(news.articles(ENGLISH_FEED))
        books = f"http://127.0.0.1:{services.ports['books']}/books/v1/volumes?q=astronomy"
        answers = [requests.get(books, timeout=30).status_code for _ in range(5)]
        services.tick()
        answers.append(requests.get(books, timeout=30).status_code)
    assert answers == [200, 200, 200, 200, 429, 200]
    assert len(news.articles(ENGLISH_FEED)) == before + 1


def test_a_usual_port_that_is_taken_is_replaced_by_a_free_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        usual = taken.getsockname()[1]
        server = DemoServer(
            name="weather",
            usual_port=usual,
            make=lambda port: StandIn(lambda _request: Response(), port=port),
        )
        with DemoServices([server], ports={}, clock=SystemClock()) as services:
            assert services.ports["weather"] not in (0, usual)


def test_the_file_has_the_section_and_the_job_of_each_part(tmp_path: Path) -> None:
    part = DemoPart(
        section="weather:\n  url: http://127.0.0.1:{weather}\n",
        job="  forecast:\n    type: weather\n    place: {place}\n    schedule: {{every: 5m}}\n",
        values=lambda context: {"place": context.folder.name},
    )
    workspace = DemoWorkspace(tmp_path / "harbour", parts=[part], clock=ManualClock(NOW))
    data = YAML(typ="safe").load(workspace.file_text({"weather": 8450}))
    assert data["weather"] == {"url": "http://127.0.0.1:8450"}
    assert data["jobs"]["forecast"] == {
        "type": "weather",
        "place": "harbour",
        "schedule": {"every": "5m"},
    }
    assert [*data["jobs"]] == ["forecast", "nightly-report", "greet-visitor"]
