"""`tsuzuki feeds`, typed as a person would who has no key: no model, and posts to a file."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.workspace import Workspace
from tsuzuki.cli import run_cli
from tsuzuki.collectors.feeds.sandbox.feed_site import Article, Feed, FeedSite
from tsuzuki.sandbox.server import StandIn

JOB = """
feeds:
  private_hosts: [127.0.0.1]
  accounts:
    default: {{type: file, path: posts.jsonl}}
jobs:
  bot:
    type: feeds
    on_event: look
    feeds:
      news: {{url: "{url}/news.xml", backfill: 2, caps: {{per_hour: 1}}}}
      held: {{url: "{url}/held.xml", backfill: all, hold: true}}
      broken: {{url: "{url}/nothing.xml"}}
  hello:
    command: [echo, hello]
"""


def article(title: str) -> Article:
    return Article(title=title, text=f"{title}. The mayor came, and so did many people.")


@pytest.fixture(scope="module")
def site() -> Iterator[StandIn]:
    site = FeedSite()
    site.add_feed(Feed(path="/news.xml"), [article(title) for title in ("Old", "Bridge", "Tram")])
    site.add_feed(Feed(path="/held.xml"), [article("Held")])
    with site.serve() as server:
        yield server


@pytest.fixture(scope="module")
def worked_once(initialised: Path, site: StandIn, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Fetched and processed: one item is left out, one posted, one waits behind a cap, one is held."""
    folder = tmp_path_factory.mktemp("feeds")
    shutil.copytree(initialised, folder, dirs_exist_ok=True)
    (folder / "tsuzuki.yaml").write_text(JOB.format(url=site.url))
    for command in ("fetch", "process"):
        assert run_cli(["feeds", command, "bot", "--quiet"], environ={}, cwd=folder) == 0
    return folder


@pytest.fixture
def bot(worked_once: Path, empty: Workspace) -> Workspace:
    shutil.copytree(worked_once, empty.folder, dirs_exist_ok=True)
    return empty


def ids(bot: Workspace) -> dict[str, str]:
    return {item["title"]: str(item["id"]) for item in bot.data("feeds", "items")}


# --- feeds ----------------------------------------------------------------------------------------


def test_the_feeds_are_listed_with_how_they_fare(bot: Workspace) -> None:
    found = {feed["name"]: feed for feed in bot.data("feeds", "ls")}
    assert {name: feed["health"] for name, feed in found.items()} == {
        "news": "good",
        "held": "good",
        "broken": "failing",
    }
    assert (found["news"]["posted"], found["news"]["processed"]) == (1, 2)
    assert (found["held"]["pending"], found["held"]["approval"]) == (1, 1)
    assert found["broken"]["failing_since"]
    table = bot.ok("feeds", "ls")
    assert "HEALTH" in table.out.splitlines()[0]
    assert bot.data("feeds", "ls", "--job", "bot") == list(found.values())


def test_a_feed_is_shown_with_its_settings_and_its_error(bot: Workspace) -> None:
    shown = bot.ok("feeds", "show", "broken")
    assert "the last fetch failed: " in shown.err
    assert "404" in shown.out
    assert 'backfill: 2, caps: {"per_hour": 1}' in bot.ok("feeds", "show", "bot/news").out
    assert bot.data("feeds", "show", "news")["settings"]["backfill"] == 2


def test_a_feed_is_added_with_what_is_missing(workspace: Workspace) -> None:
    words = ("feeds", "add", "news", "https://a.example/feed", "--set", "language=ja")
    workspace.ok(*words, "--dry-run")  # creates the tables
    before = workspace.content()
    tried = workspace.ok(*words, "--dry-run")
    assert workspace.content() == before
    assert "Account 'default' is not configured, so nothing can be posted." in tried.err
    assert "accounts: {default: {type: file, path: posts.jsonl}}" in tried.err
    assert "extractive" in tried.err
    added = workspace.data(*words)
    assert (added["name"], added["job"], added["language"]) == ("news", "feeds", "ja")
    assert len(added["missing"]) == 1
    assert workspace.run(*words).code == 6
    assert workspace.job("feeds")["options"]["feeds"]["news"]["language"] == "ja"
    workspace.append("feeds: {accounts: {default: {type: file, path: posts.jsonl}}}\n")
    more = workspace.ok("feeds", "add", "more", "https://b.example/feed")
    assert "Missing" not in more.err
    assert "Next: tsuzuki feeds fetch feeds" in more.err


def test_a_missing_variable_is_told_when_a_feed_is_added(workspace: Workspace) -> None:
    workspace.append("feeds: {models: {default: {provider: gemini, api_key: '${KEY}'}}}\n")
    added = workspace.ok("feeds", "add", "news", "https://a.example/feed")
    assert "Missing: A run would fail: environment variable KEY is not set." in added.err


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("add", "x", "ftp://a.example"), 3, "must be an address with http:// or https://"),
        (("add", "x", "https://a.example", "--set", "langauge=ja"), 3, 'Did you mean "language"?'),
        (("add", "x", "https://a.example", "--job", "hello"), 4, "error[not_a_feeds_job]"),
        (("show", "newz"), 4, 'Did you mean "news"?'),
        (("rm", "newz", "--yes"), 4, "error[feed_unknown]"),
        (("rm", "news"), 2, "confirmation required"),
        (("fetch", "bto"), 4, 'Did you mean "bot"?'),
        (("process", "hello"), 4, "tsuzuki job run hello"),
        (("process", "bto", "--dry-run"), 4, "error[job_unknown]"),
        (("items", "--feed", "newz"), 4, "error[feed_unknown]"),
        (("items", "--job", "bto"), 4, "error[job_unknown]"),
        (("items", "--status", "done"), 2, "'unprocessed'"),
        (("item", "99"), 4, "error[item_unknown]"),
        (("explain", "https://a.example/none"), 4, "tsuzuki feeds items"),
        (("explain", "9" * 23), 4, "tsuzuki feeds items"),
        (("requeue", "1", "--feed", "news"), 2, "Leave --feed out"),
        (("preview", "99"), 4, "error[item_unknown]"),
        (("requeue",), 2, "For example: tsuzuki feeds requeue 12"),
        (("approve", "1", "--was-sent", "--send-again"), 2, "Check whether the post arrived"),
    ],
)
def test_a_mistake_is_told_with_the_next_step(
    bot: Workspace, words: tuple[str, ...], code: int, said: str
) -> None:
    before = bot.file.read_text()
    ended = bot.run("feeds", *words)
    assert (ended.code, ended.out) == (code, "")
    assert said in ended.err
    assert bot.file.read_text() == before


def test_a_removed_feed_keeps_its_items(bot: Workspace) -> None:
    assert bot.data("feeds", "rm", "news", "--yes")["name"] == "news"
    found = {feed["name"]: feed["health"] for feed in bot.data("feeds", "ls")}
    assert found["news"] == "removed"
    waiting = ids(bot)["Tram"]
    assert "no job processes its feed news any more" in str(bot.data("feeds", "explain", waiting))
    assert bot.run("feeds", "preview", waiting).code == 6
    bot.ok("feeds", "rm", "held", "--yes")
    last = bot.run("feeds", "rm", "broken", "--yes")
    assert (last.code, "tsuzuki job rm bot" in last.err) == (6, True)


# --- items ----------------------------------------------------------------------------------------


def test_the_items_are_listed_with_what_became_of_them(bot: Workspace) -> None:
    found = {item["title"]: item for item in bot.data("feeds", "items")}
    assert {title: item["outcome"] for title, item in found.items()} == {
        "Old": "left out",
        "Bridge": "posted",
        "Tram": None,
        "Held": "held",
    }
    assert (found["Bridge"]["status"], found["Bridge"]["reason"]) == ("processed", "none")
    assert [item["title"] for item in bot.data("feeds", "items", "--waiting", "approval")] == [
        "Held"
    ]
    assert [item["title"] for item in bot.data("feeds", "items", "--search", "bRid")] == ["Bridge"]
    assert bot.data("feeds", "items", "--reason", "api_failed") == []
    assert "no items" in bot.ok("feeds", "items", "--reason", "api_failed").err
    lines = bot.ok("feeds", "items", "--output", "jsonl").out.splitlines()
    assert [json.loads(line)["title"] for line in lines] == list(found)
    by_link = bot.data("feeds", "item", found["Tram"]["url"])
    assert by_link["id"] == found["Tram"]["id"]


def test_every_step_is_explained_with_what_happens_next(bot: Workspace) -> None:
    found = ids(bot)
    posted = bot.data("feeds", "explain", found["Bridge"])
    assert [step["step"] for step in posted["steps"]] == [
        "download",
        "screening",
        "summary",
        "post",
    ]
    assert posted["next"] == ["Posted. Nothing left to do."]
    assert "backfill: 2" in bot.data("feeds", "explain", found["Old"])["next"][0]
    capped = bot.data("feeds", "explain", found["Tram"])["next"]
    assert any("the next post is possible at" in s for s in capped)
    held = bot.data("feeds", "explain", found["Held"])["next"]
    assert f"To approve it: tsuzuki feeds approve {found['Held']}" in held
    table = bot.ok("feeds", "explain", found["Bridge"])
    assert table.out.splitlines()[0].split()[:4] == ["AT", "STEP", "OUTCOME", "SECONDS"]


def test_a_held_post_is_read_approved_and_sent(bot: Workspace) -> None:
    held = ids(bot)["Held"]
    assert "The mayor came" in bot.ok("feeds", "preview", held, "--prompts").out
    assert bot.data("feeds", "preview", held)["post"]["visibility"] == "unlisted"
    bot.ok("feeds", "approve", held, "--dry-run")
    assert bot.data("feeds", "item", held)["waiting"] == "approval"
    bot.ok("feeds", "approve", held)
    assert bot.run("feeds", "approve", held).code == 6
    assert bot.run("feeds", "approve", held, "--dry-run").code == 6
    assert bot.run("feeds", "approve", held, "--was-sent").code == 6
    ended = bot.run("feeds", "process", "bot", "--output", "json")
    assert ended.data["result"]["process"]["posted"] == 1
    posted = (bot.folder / "posts.jsonl").read_text().splitlines()
    assert len(posted) == 2
    actions = [line["action"] for line in bot.data("audit", "ls")]
    assert actions[:2] == ["run.start", "feeds.item.approve"]


def test_what_was_left_out_is_requeued_and_what_was_posted_is_not(bot: Workspace) -> None:
    found = ids(bot)
    refused = bot.run("feeds", "requeue", found["Old"], found["Bridge"])
    assert (refused.code, "never posted again" in refused.err) == (6, True)
    assert bot.data("feeds", "item", found["Old"])["status"] == "processed"
    bot.ok("feeds", "requeue", found["Old"], "--dry-run")
    assert bot.data("feeds", "item", found["Old"])["status"] == "processed"
    (again,) = bot.data("feeds", "requeue", found["Old"])
    assert (again["status"], again["waiting"]) == ("unprocessed", "ready")
    assert bot.data("feeds", "requeue", "--reason", "api_failed", "--yes") == []


def test_a_dry_run_lists_what_would_be_drawn(bot: Workspace) -> None:
    (planned,) = bot.data("feeds", "process", "bot", "--dry-run")
    assert (planned["title"], planned["next_step"]) == ("Tram", "download and screening")
    assert bot.data("run", "ls")[0]["id"] == 2


def test_the_budget_is_shown(bot: Workspace) -> None:
    found = bot.data("feeds", "budget")
    assert [one["scope"] for one in found][:2] == ["all", "model default"]
    assert found[0]["requests"] == 0
    assert bot.ok("feeds", "budget").out.startswith("SCOPE ")


def test_the_budget_is_shown_without_the_keys_that_a_run_needs(bot: Workspace) -> None:
    models = "feeds:\n  models: {paid: {provider: gemini, api_key: '${KEY}', budget: {requests_per_day: 7}}}\n"
    bot.file.write_text(bot.file.read_text().replace("feeds:\n", models, 1))
    found = {one["scope"]: one["requests_limit"] for one in bot.data("feeds", "budget")}
    assert found["model paid"] == 7


# --- runs -----------------------------------------------------------------------------------------


def test_a_run_ends_in_figures_and_sentences(bot: Workspace) -> None:
    ended = bot.ok("feeds", "process", "bot")
    assert ended.out.splitlines()[0].split() == "DRAWN POSTED HELD DEFERRED GIVEN UP".split()
    assert "news stopped for now: the feed's post caps are reached. Continues at 20" in ended.err
    assert "+00:00" not in ended.err


def test_a_missing_account_fails_the_run_and_leaves_the_items(bot: Workspace) -> None:
    bot.file.write_text(bot.file.read_text().replace("    default:", "    other:"))
    waiting = ids(bot)["Tram"]
    before = bot.data("feeds", "item", waiting)
    assert any("is not configured" in s for s in bot.data("feeds", "explain", waiting)["next"])
    bot.file.write_text(bot.file.read_text().replace("per_hour: 1", "per_hour: 9"))
    ended = bot.run("feeds", "process", "bot", "--output", "json")
    assert ended.code == 1
    assert ended.data["error"].startswith("no_account: account 'default' is missing")
    after = bot.data("feeds", "item", waiting)
    assert (after["retry_count"], after["waiting"]) == (0, "ready")
    assert before["status"] == "unprocessed"
