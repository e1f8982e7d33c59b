"""The feeds in `tsuzuki demo`: news with a new article every minute, and a Mastodon to post them to."""

from itertools import count

from tsuzuki.cli.demo.part import DemoContext, DemoPart, DemoServer
from tsuzuki.collectors.feeds.sandbox.feed_site.demo_news import make_news, publish
from tsuzuki.collectors.feeds.sandbox.mastodon import mastodon
from tsuzuki.sandbox.server import StandIn

SECTION = """\
feeds:
  private_hosts: [127.0.0.1]
  models:
    default: {{provider: extractive}}   # no model: the first sentences are the summary
  accounts:
    default:
      type: mastodon
      base_url: http://127.0.0.1:{mastodon}
      access_token: ${{SANDBOX_MASTODON_TOKEN:-sandbox-token}}
"""
JOB = """\
  news-bot:
    description: Post each new article once
    type: feeds
    schedule: {{every: 1m}}
    feeds:
      town:
        url: http://127.0.0.1:{feeds}/en/feed.xml
        backfill: all
        fetch_every: 30s
        caps: {{per_run: 10, per_hour: 100, per_day: 1000}}
      ministry:
        url: http://127.0.0.1:{feeds}/news.rdf
        language: ja
        backfill: 3
        silent_after: 30d
        hold: true              # each post waits for a person: the page Feeds, or tsuzuki feeds approve
"""
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
    look_at={"/feeds": "what was posted, and what waits for your approval"},
    commands={ADD_ARTICLE: "posted within a minute"},
)
