"""`tsuzuki demo`: alive at once, gone at ^C, and going on at the next start."""

import json
import os
import shutil
import signal
import socket
import sqlite3
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
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
def demo(
    folder: Path, **variables: str
) -> Iterator[tuple["subprocess.Popen[str]", dict[str, Any]]]:
    """The process, leader of a session of its own, and what it told."""
    process = subprocess.Popen(
        [PROGRAM, "demo", "demo", "--listen", "127.0.0.1:0", "--output", "jsonl"],
        cwd=folder,
        env=process_environment({"TSUZUKI_CODEINDEX_FOLDER": str(folder / "index"), **variables}),
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


def runs_of(url: str, job: str) -> list[dict[str, Any]]:
    """The runs of a job, the newest first."""
    found: list[dict[str, Any]] = of(url, f"/api/v1/runs?limit=100&job={job}")["items"]
    return found


def of(url: str, path: str) -> Any:
    return requests.get(url + path, timeout=30).json()


def is_free(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        return probe.connect_ex(("127.0.0.1", port)) != 0


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of the page of a demo that nobody has touched."""
    with demo(tmp_path_factory.mktemp("shown")) as (_process, told):
        yield told["url"]


def shown_soon(condition: Callable[[], Any], what: str) -> Any:
    """Thirty seconds, on a machine that has nothing else to do."""
    return eventually(condition, what=what, seconds=90)


@pytest.mark.parametrize("job", ["news-bot", "commits", "code-index", "greet-visitor"])
def test_a_demo_does_the_work_of_each_kind_of_job(shown: str, job: str) -> None:
    shown_soon(
        lambda: any(run["state"] == "SUCCEEDED" for run in runs_of(shown, job)), f"a run of {job}"
    )


def test_a_demo_shows_a_run_in_progress_with_a_bar(shown: str) -> None:
    shown_soon(lambda: "<progress" in requests.get(shown, timeout=30).text, "a bar")
    running = of(shown, "/overview.json")["running"]
    assert "make-thumbnails" in [run["job_name"] for run in running]


def test_a_demo_shows_a_failure_and_its_retry(shown: str) -> None:
    def retried() -> Any:
        runs = {run["id"]: run for run in runs_of(shown, "nightly-report")}
        return [
            (runs[run["retry_of"]]["state"], run["state"])
            for run in runs.values()
            if run["retry_of"] is not None
        ]

    shown_soon(lambda: ("FAILED", "SUCCEEDED") in retried(), "a retry that succeeded")


def test_a_demo_shows_a_skipped_tick_with_its_reason(shown: str) -> None:
    shown_soon(
        lambda: any(run["reason"] == "overlap" for run in runs_of(shown, "make-thumbnails")),
        "a skipped tick",
    )


def test_a_demo_shows_a_collector_that_waits_for_its_quota(shown: str) -> None:
    def search() -> Any:
        return of(shown, "/books.json")["searches"][0]["last"]

    shown_soon(lambda: search()["stop_reason"] == "quota", "a quota that is used up")
    assert search()["resumes_at"] is not None


def test_a_demo_shows_a_post_that_waits_for_approval(shown: str) -> None:
    shown_soon(
        lambda: any(feed["approval"] for feed in of(shown, "/feeds.json")["feeds"]), "a held post"
    )


def test_the_first_page_of_a_demo_names_all_of_that(shown: str) -> None:
    def overview() -> Any:
        return of(shown, "/overview.json")

    def troubles() -> dict[str, Any]:
        return {one["run"]["job_name"]: one for one in overview()["troubled"]}

    def links() -> set[str]:
        return {card["path"].partition("?")[0] for card in overview()["cards"]}

    shown_soon(
        lambda: (
            (troubles().get("nightly-report", {}).get("retry") or {}).get("state") == "SUCCEEDED"
        ),
        "a failure with its retry",
    )
    shown_soon(lambda: "make-thumbnails" in troubles(), "a skip")
    skipped = troubles()["make-thumbnails"]["run"]
    assert (skipped["outcome"], skipped["blocked_by"]) == (
        "skipped",
        overview()["running"][0]["id"],
    )
    shown_soon(lambda: {"/books", "/feeds/items/approve"} <= links(), "what waits in collections")


@pytest.mark.timeout(300)
def test_a_demo_leaves_nothing_behind_and_goes_on(tmp_path: Path) -> None:
    with demo(tmp_path) as (process, told):
        url = told["url"]
        shown_soon(lambda: len(requests.get(_statuses(told), timeout=30).json()) >= 4, "posts")
        eventually(lambda: thumbnails_log(url).count("first picture") or None, what="the long run")
        stopped_by_interrupt(process)
    assert all(map(is_free, told["ports"].values()))
    pass_minutes(tmp_path / "demo" / "tsuzuki.db", 20)
    with demo(tmp_path) as (process, again):
        url = again["url"]
        assert again["ports"] == told["ports"]
        eventually(lambda: thumbnails_log(url).count("continuing") or None, what="its continuation")
        late = eventually(lambda: skipped_as_late(url), what="what was due meanwhile")
        assert max(Counter(late).values()) <= 3
        assert requests.get(_statuses(again), timeout=30).json() == []
        stopped_by_interrupt(process)


def thumbnails_log(url: str) -> str:
    """What the long run in progress has written."""
    running = (run["id"] for run in runs_of(url, "make-thumbnails") if run["state"] == "RUNNING")
    return "".join(str(of(url, f"/api/v1/runs/{number}/logs")) for number in running)


def skipped_as_late(url: str) -> list[str] | None:
    """The job of each recorded skip, once those of the job with the most ticks are there."""
    runs = of(url, "/api/v1/runs?limit=100")["items"]
    late = [run["job_name"] for run in runs if run["reason"] == "late"]
    return late if "news-bot" in late else None


def pass_minutes(database: Path, minutes: int) -> None:
    """As if the demo had been stopped for so long."""
    with closing(sqlite3.connect(database)) as connection, connection:
        connection.execute(
            "UPDATE tsuzuki_job_definitions SET planned_until ="
            " strftime('%Y-%m-%dT%H:%M:%S.000000Z', planned_until, ?)",
            (f"-{minutes} minutes",),
        )


def _statuses(told: Mapping[str, Any]) -> str:
    return f"http://127.0.0.1:{told['ports']['mastodon']}/_sandbox/statuses"


def test_a_demo_on_a_machine_without_git_has_no_commits(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("sh", "sleep"):
        (programs / name).symlink_to(shutil.which(name) or "")
    with demo(tmp_path, PATH=str(programs)) as (process, told):
        url = told["url"]
        shown_soon(lambda: runs_of(url, "code-index")[0]["state"] == "SUCCEEDED", "an index")
        assert set(told["ports"]) == {*PORTS} - {"gitlab"}
        assert "commits" not in [job["name"] for job in of(url, "/api/v1/jobs")["items"]]
        stopped_by_interrupt(process)


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
        answers = [requests.get(books, timeout=30).status_code for _ in range(11)]
        services.tick()
        answers.append(requests.get(books, timeout=30).status_code)
    assert answers == [*[200] * 10, 429, 200]
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
    assert [*data["jobs"]] == ["forecast", "nightly-report", "make-thumbnails", "greet-visitor"]
