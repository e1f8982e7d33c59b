"""The example of a ministry's press releases: its files are valid, and it runs against the sandbox."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.workspace import Workspace
from tsuzuki.collectors.feeds.sandbox.feed_site.demo import make_demo
from tsuzuki.collectors.feeds.sandbox.gemini import Gemini
from tsuzuki.collectors.feeds.sandbox.mastodon import Mastodon, mastodon
from tsuzuki.sandbox.server import StandIn

EXAMPLE = Path(__file__).parents[3] / "examples" / "press-releases"
JOB = "press-releases"


@pytest.fixture
def posts() -> Mastodon:
    return mastodon()


@pytest.fixture
def workspace(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], posts: Mastodon
) -> Iterator[Workspace]:
    """The example for the sandbox, with one on other ports."""
    workspace = Workspace(tmp_path, capsys)
    site = make_demo(traps=False)
    with site.serve() as feeds, StandIn(Gemini()) as gemini, StandIn(posts) as server:
        text = (EXAMPLE / "sandbox.yaml").read_text()
        for port, url in ((8932, feeds.url), (8933, gemini.url), (8935, server.url)):
            text = text.replace(f"http://127.0.0.1:{port}", url)
        workspace.file.write_text(text)
        yield workspace


def feed(workspace: Workspace) -> dict[str, Any]:
    found: dict[str, Any] = workspace.job(JOB)["options"]["feeds"]["soumu"]
    return found


def test_both_files_are_valid_and_differ_in_addresses_and_backfill_only(
    workspace: Workspace,
) -> None:
    tried = feed(workspace)
    workspace.file.write_text((EXAMPLE / "tsuzuki.yaml").read_text())
    real = feed(workspace)
    assert real["url"] == "https://www.soumu.go.jp/news.rdf"
    assert {key for key in real if real[key] != tried[key]} == {"url", "backfill"}


def test_it_posts_summaries_in_japanese_with_its_hashtags(
    workspace: Workspace, posts: Mastodon
) -> None:
    workspace.ok("feeds", "fetch", JOB)
    workspace.ok("feeds", "process", JOB)
    outcomes = [item["outcome"] for item in workspace.data("feeds", "items")]
    assert outcomes.count("posted") == 3, "as many as its caps allow in one run"
    assert len(posts.statuses) == 3
    for status in posts.statuses:
        assert status.text.endswith("#総務省 #報道資料")
        assert "見本省" in status.text
