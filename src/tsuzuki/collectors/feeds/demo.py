"""The feeds in `tsuzuki demo`: news with a new article every minute, and a Mastodon to post them to."""

from itertools import count

from tsuzuki.cli.demo.part import DemoContext, DemoPart, DemoServer
from tsuzuki.collectors.feeds.sandbox.feed_site.demo_news import make_news, publish
from tsuzuki.collectors.feeds.sandbox.mastodon import mastodon
from tsuzuki.sandbox.server import StandIn

SECTION = (
    "feeds:\n  private_hosts: [127.0.0.1]\n  models:\n    default: {{provider: "
    "extractive}}   # no model: uses the first sentences as the summary\n  accounts:\n "
    "   default:\n      type: mastodon\n      base_url: http://127.0.0.1:{mastodon}\n  "
    "    access_token: ${{SANDBOX_MASTODON_TOKEN:-sandbox-token}}\n"
)
JOB = (
    "  news-bot:\n    description: Post each new article once\n    type: feeds\n    "
    "schedule: {{every: 1m}}\n    feeds:\n      town:\n        url: "
    "http://127.0.0.1:{feeds}/en/feed.xml\n        backfill: all\n        fetch_every: "
    "30s\n        caps: {{per_run: 10, per_hour: 100, per_day: 1000}}\n      "
    "ministry:\n        url: http://127.0.0.1:{feeds}/news.rdf\n        language: ja\n "
    "       backfill: 3\n        silent_after: 30d\n        hold: true              # "
    "each post waits for approval: on the page Feeds, or with tsuzuki feeds approve\n"
)
ADD_ARTICLE = (
    """curl -d '{{"feed": "/en/feed.xml", "title": "My news", "text": "It rained. It stopped."}}'"""
    " http://127.0.0.1:{feeds}/_sandbox/articles"
)


def _servers(context: DemoContext) -> tuple[DemoServer, ...]:
    news = make_news(since=context.since)
    numbers = count()
    account = mastodon(clock=context.clock)
    return (
        DemoServer(
            name="feeds",
            usual_port=8424,
            make=lambda port: StandIn(news, port=port),
            each_minute=lambda: publish(news, next(numbers), at=context.clock.now()),
        ),
        DemoServer(name="mastodon", usual_port=8425, make=lambda port: StandIn(account, port=port)),
    )


DEMO = DemoPart(
    section=SECTION,
    job=JOB,
    servers=_servers,
    run_at_start=("news-bot",),
    look_at={"/feeds": "sent posts, and posts waiting for your approval"},
    commands={ADD_ARTICLE: "an article that is posted within a minute"},
)
