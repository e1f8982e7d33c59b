"""The collector of examples/statuses, installed and looked at from every host: it uses each extension point."""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import pytest
from mcp import StdioServerParameters
from playwright.sync_api import Browser, expect

from support.chromium import browser
from support.daemons import eventually
from support.event_stream import EventReader
from support.example_collector import ROOT, install_example
from support.mcp_http import call_text
from support.mcp_session import Session, server_command
from support.page_checks import WAIT_MS, layouts, visitor
from support.web_client import Client
from support.web_process import serving
from support.workspace import PROGRAM, Ended, Workspace, process_environment
from tsuzuki.web.pages.extension import Pages
from tsuzuki.wiring.collector import Collector

expect.set_options(timeout=WAIT_MS)

ACCOUNT, OTHER_ACCOUNT = "109302436954721982", "1"
POSTED = 12
"""What the stand-in has at its start."""
VARIABLE = "TSUZUKI_STATUSES_BASE_URL"
FILE = """\
version: 1
web: {{owner_mode: open}}
statuses: {{base_url: '{url}', page_size: 5}}
jobs:
  news: {{type: statuses, account: '{account}'}}
  hello: {{command: [echo, hi]}}
"""


@dataclass(frozen=True)
class Site:
    """A workspace whose job has run once, in an environment with the example."""

    workspace: Workspace
    site: Path
    account_url: str

    @property
    def environ(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.site)}

    def run(self, *words: str, **environ: str) -> Ended:
        return self.workspace.forked(*words, **self.environ, **environ)

    def data(self, *words: str, **environ: str) -> Any:
        ended = self.run(*words, "--output", "json", **environ)
        assert ended.code == 0, ended.err
        return ended.data

    def write(self, account: str = ACCOUNT) -> None:
        text = FILE.format(url=self.account_url, account=account)
        self.workspace.file.write_text(text, "utf-8")

    def collect(self) -> dict[str, Any]:
        started = self.data("job", "run", "news")
        self.data("run-due")
        shown: dict[str, Any] = self.data("run", "show", str(started["run_id"]))
        return shown


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return install_example(tmp_path_factory.mktemp("example"))


@contextmanager
def sandbox(installed: Path, folder: Path) -> Iterator[str]:
    """The address of the stand-in, as `tsuzuki sandbox` prints it."""
    names = ("gitlab", "books", "mail", "feeds", "gemini", "openai", "mastodon", "statuses")
    ports = [word for name in names for word in (f"--{name}-port", "0")]
    with subprocess.Popen(
        [PROGRAM, "sandbox", *ports, "--output", "jsonl"],
        cwd=folder,
        env=process_environment({"PYTHONPATH": str(installed), "TMPDIR": str(folder)}),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        rows = (json.loads(line) for line in process.stdout)
        try:
            yield next(row["value"] for row in rows if row["variable"] == VARIABLE)
        finally:
            process.kill()


@pytest.fixture(scope="module")
def account_url(installed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with sandbox(installed, tmp_path_factory.mktemp("sandbox")) as url:
        yield url


@pytest.fixture
def site(
    installed: Path, account_url: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> Site:
    """Only files are made here; a test collects what it needs."""
    folder = tmp_path / "workspace"
    folder.mkdir()
    made = Site(Workspace(folder, capsys), installed, account_url)
    made.write()
    return made


@contextmanager
def served(site: Site) -> Iterator[tuple[str, Client]]:
    """The address of a web server of the workspace, and a client with all rights."""
    words = ("web", "--listen", "127.0.0.1:0")
    with serving(site.workspace.folder, *words, environ=site.environ) as (_, url):
        yield url, Client(url, token_of(site, "admin", "--role", "admin"))


def token_of(site: Site, name: str, *words: str) -> str:
    return site.run("token", "create", name, *words).out.strip()


def ask(url: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = Request(url, data=data, headers={"Content-Type": "application/json"})
    with urlopen(request, timeout=60) as answer:
        return json.loads(answer.read())


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as opened:
        yield opened


def test_the_example_uses_every_extension_point(installed: Path) -> None:
    code = (
        "import json; from dataclasses import fields;"
        "from tsuzuki_statuses.plugin import COLLECTOR as one; from tsuzuki_statuses.pages import PAGES;"
        "from tsuzuki_statuses.options import KIND;"
        "print(json.dumps([[f.name for f in fields(x) if getattr(x, f.name)] for x in (one, PAGES, KIND)]))"
    )
    command = [sys.executable, "-c", code]
    env = process_environment({"PYTHONPATH": str(installed)})
    told = subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout
    record, pages, kind = map(set, json.loads(told))
    assert record == {field.name for field in fields(Collector)} - {"own_jobs"}  # it defines none
    assert pages == {field.name for field in fields(Pages)} - {"numbered"}  # its ids are no numbers
    assert kind >= {"questions", "starter_section", "starter_job", "starter_variables"}


@pytest.mark.slow
def test_a_browser_shows_menu_card_page_and_what_a_run_left(site: Site, chromium: Browser) -> None:
    run = site.collect()
    assert run["result"]["kept"] == POSTED
    with served(site) as (url, _), visitor(chromium, url) as person:
        page = person.open("/")
        card = page.locator("#cards li", has_text="Statuses")
        expect(card.locator(".tile-number")).to_have_text(str(POSTED))
        expect(page.get_by_role("navigation").get_by_role("link", name="Statuses")).to_be_visible()
        card.click()
        expect(page.locator("#statuses tbody tr")).to_have_count(POSTED)
        page = person.open(f"/runs/{run['id']}")
        expect(page.locator("#cursor")).to_contain_text(f"{POSTED}")
        page.get_by_role("link", name=f"{POSTED} statuses").click()
        expect(page.locator("#statuses tbody tr")).to_have_count(POSTED)
        with layouts(chromium, url) as held:
            held.check("/")
            held.check("/statuses?job=news")
            held.check("/statuses/jobs/news/forget")
        page = person.open("/statuses/jobs/news/forget")
        page.get_by_role("button", name="Delete statuses").click()
        expect(page.get_by_text(f"Deleted {POSTED} statuses.")).to_be_visible()
        expect(page.get_by_text("No statuses yet")).to_be_visible()
    (change, *_) = site.data("audit", "ls", "--type", "statuses")
    assert (change["action"], change["object_id"]) == ("statuses.forget", "news")


@pytest.mark.slow
def test_routes_topic_and_tool_need_the_rights_of_the_collector(site: Site) -> None:
    site.collect()
    with served(site) as (url, admin):
        first = admin.get("statuses?limit=5").json
        assert [len(first["items"]), first["next_cursor"] is None] == [5, False]
        rest = admin.get(f"statuses?limit=50&cursor={first['next_cursor']}").json
        ids = [one["id"] for one in (*first["items"], *rest["items"])]
        assert len(set(ids)) == len(ids) == POSTED

        operation = admin.get("/openapi.json").json["paths"]["/api/v1/statuses"]["get"]
        assert operation["x-right"] == "statuses:read"
        with_right = token_of(site, "with", "--scope", "statuses:read")
        without = admin.as_(token_of(site, "without", "--scope", "jobs:read"))
        reader = admin.as_(with_right)
        assert reader.get("me").json["rights"] == ["statuses:read"]
        assert reader.get("statuses").status == 200
        assert without.get("statuses").code == "right_missing"
        assert reader.get("/statuses/jobs/news/forget").status == 403

        with EventReader(url, "statuses", token=with_right) as reading:
            (told,) = next(reading.events("statuses")).data["statuses"]
        assert told["kept"] == POSTED
        assert without.get("stream?topics=statuses").code == "right_missing"

        assert call_text(reader, "status_list", limit=2).startswith("2 statuses\n")
        assert call_text(without, "status_list").startswith("!right_missing")


@pytest.mark.slow
def test_an_agent_calls_the_tool_over_stdio(site: Site) -> None:
    site.collect()
    program, *arguments = server_command("--tools", "statuses")
    target = StdioServerParameters(
        command=program,
        args=arguments,
        env=process_environment(site.environ),
        cwd=site.workspace.folder,
    )
    session = Session(target)
    try:
        listed = session.run(session.client.list_tools()).tools
        assert [tool.name for tool in listed] == ["status_list"]
        answer = session.call("status_list", {"limit": 3})
        assert answer.structured_content is not None
        assert answer.structured_content["count"] == 3
    finally:
        session.close()


def test_doctor_asks_for_each_account(site: Site) -> None:
    def check(**environ: str) -> Mapping[str, Any]:
        ended = site.run("doctor", "--output", "json", **environ)
        (found,) = [one for one in ended.data if one["what"] == "statuses: news"]
        return dict(found)

    site.data("job", "apply")
    assert check()["result"] == "ok"
    ask(f"{site.account_url}/_sandbox/faults", {"kind": "answer", "path": "*", "status": 503})
    assert check()["result"] == "fail"
    assert check()["result"] == "ok"
    site.write(account=OTHER_ACCOUNT)
    assert check()["result"] == "fail"


def test_the_cursor_is_shown_reset_and_bound_to_its_account(site: Site) -> None:
    assert site.data("job", "cursor", "ls", "news") == []
    site.collect()
    (cursor,) = site.data("job", "cursor", "ls")
    assert (cursor["job"], cursor["is_current"]) == ("news", True)
    assert site.data("job", "cursor", "reset", "news", "--yes") == {"job": "news", "reset": 1}
    assert site.collect()["result"] == {
        "kept": 0,
        "before": POSTED,
        "newest_id": cursor["start_index"],
    }
    site.write(account=OTHER_ACCOUNT)
    site.data("job", "apply")
    (cursor,) = site.data("job", "cursor", "ls")
    assert cursor["is_current"] is False
    assert site.run("job", "cursor", "ls", "hello").code != 0


def test_a_dry_run_stores_nothing(site: Site) -> None:
    text = site.workspace.file.read_text()
    site.workspace.file.write_text(
        text.replace(f"account: '{ACCOUNT}'", f"account: '{ACCOUNT}', schedule: every 1h")
    )
    site.data("job", "apply")
    site.data("run-due", "--dry-run")
    (run,) = site.data("run", "ls", "--job", "news")
    assert site.data("run", "show", str(run["id"]))["result"]["kept"] == 0
    assert site.data("statuses", "ls") == []


def test_a_new_workspace_has_its_example_and_its_variable(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "new"
    site.data("init", str(folder))
    text = (folder / "tsuzuki.yaml").read_text()
    assert "# statuses:\n#   base_url: " in text
    assert "\n  # mastodon-news:\n  #   type: statuses" in text
    assert f"\n# type: statuses\n#{VARIABLE}=" in (folder / ".env.example").read_text()


def test_jobs_and_rights_are_completed(site: Site) -> None:
    def offered(line: str) -> list[str]:
        words = line.split(" ")
        environ = {"COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
        ended = site.run(**environ, _TSUZUKI_COMPLETE="bash_complete")
        return [row.partition(",")[2] for row in ended.out.splitlines()]

    site.data("job", "apply")
    assert offered("tsuzuki statuses ls --job ") == ["news"]
    assert offered("tsuzuki token create x --scope statuses:") == [
        "statuses:forget",
        "statuses:read",
    ]


def test_the_benchmark_is_one_of_all_and_gives_every_figure(site: Site, tmp_path: Path) -> None:
    result = tmp_path / "statuses.json"
    run = partial(subprocess.run, cwd=ROOT, capture_output=True, text=True, check=True)
    env = process_environment(site.environ)
    listed = run([sys.executable, "-m", "bench", "--help"], env=env)
    assert "statuses" in listed.stdout
    words = ["--short", "--statuses", "50", "--result", str(result)]
    run([sys.executable, "-W", "ignore", "-m", "tsuzuki_statuses.bench", *words], env=env)
    bare, ours = json.loads(result.read_text())["rows"]
    assert ours["seconds_to_bare"] == ours["seconds"] / bare["seconds"]


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_the_demo_collects_from_the_stand_in(site: Site, tmp_path: Path) -> None:
    environ = {**site.environ, "TSUZUKI_CODEINDEX_FOLDER": str(tmp_path / "index")}
    words = ["demo", "demo", "--listen", "127.0.0.1:0", "--output", "jsonl"]
    with subprocess.Popen(
        [PROGRAM, *words],
        cwd=tmp_path,
        env=process_environment(environ),
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        try:
            url = json.loads(process.stdout.readline())["url"]
            find = partial(ask, f"{url}/api/v1/statuses?count=true")
            eventually(lambda: find()["count"]["value"] == POSTED, what="the statuses")
        finally:
            process.terminate()
            assert process.wait(120) in (0, 143)
