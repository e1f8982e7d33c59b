"""One server of the sandbox in a process of its own.

python -m bench.feeds.server articles 1000 | feeds 500 | gemini | mastodon

Prints its address and serves until its input ends; to the line `count` it prints how many requests came.
"""

import sys
from typing import Any

from tsuzuki.collectors.feeds.sandbox.feed_site import Article, Feed, FeedSite
from tsuzuki.collectors.feeds.sandbox.gemini import Gemini
from tsuzuki.collectors.feeds.sandbox.mastodon import mastodon
from tsuzuki.sandbox.server import StandIn

FEED_PATH = "/news.xml"
PARAGRAPHS = 12
SENTENCE = (
    "The office in district {number} has published the figures of month {paragraph}, and says that {share} "
    "households have been connected since the last report, which is more than was planned for the year."
)


def text(number: int) -> str:
    """An article of about 4,500 characters."""
    return "\n\n".join(
        " ".join(
            SENTENCE.format(number=number, paragraph=paragraph, share=number * paragraph + share)
            for share in (1, 2)
        )
        for paragraph in range(PARAGRAPHS)
    )


def site_of_articles(count: int) -> FeedSite:
    """Serve one feed with `count` articles."""
    site = FeedSite()
    articles = [
        Article(title=f"Report {number} of the office", text=text(number), summary="A report.")
        for number in range(count)
    ]
    site.add_feed(Feed(path=FEED_PATH, title="Reports"), articles)
    return site


def site_of_feeds(count: int) -> FeedSite:
    """Serve `count` feeds of ten articles each."""
    site = FeedSite()
    for feed in range(count):
        articles = [Article(title=f"Report {feed}.{number}", text="News.") for number in range(10)]
        site.add_feed(Feed(path=f"/feed{feed}.xml", title=f"Feed {feed}"), articles)
    return site


def application(kind: str, count: int) -> Any:
    match kind:
        case "articles":
            return site_of_articles(count)
        case "feeds":
            return site_of_feeds(count)
        case "gemini":
            return Gemini()
        case "mastodon":
            return mastodon()
        case _:
            raise SystemExit(f"no such server: {kind}")


def main() -> None:
    kind, count = sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with StandIn(application(kind, count)) as server:
        print(server.url, flush=True)
        for line in sys.stdin:
            if line.strip() == "count":
                print(server.count(), flush=True)


if __name__ == "__main__":
    main()
