"""The record of the feeds collector."""

from tsuzuki.wiring.collector import Collector

COLLECTOR = Collector(
    name="feeds",
    summary="Follow feeds; screen, summarize and post each new article once.",
    kind="tsuzuki.collectors.feeds.options:KIND",
    component="tsuzuki.collectors.feeds.tables:COMPONENT",
    handler="tsuzuki.collectors.feeds.collect:collect",
    service="tsuzuki.collectors.feeds.service:FeedsService.of",
    checks="tsuzuki.collectors.feeds.checks:checks",
    verify="tsuzuki.collectors.feeds.verify:verify",
    needs=(
        *("charset_normalizer", "feedparser", "grapheme", "httpx2", "mastodon", "pypdf"),
        "trafilatura",
    ),
    audited=("feed item",),
    commands={"feeds": "tsuzuki.collectors.feeds.commands.feeds:feeds"},
    routes=(
        "tsuzuki.collectors.feeds.api.feeds:router",
        "tsuzuki.collectors.feeds.api.items:router",
    ),
    topics="tsuzuki.collectors.feeds.stream:TOPICS",
    pages="tsuzuki.collectors.feeds.pages:PAGES",
    stand_ins="tsuzuki.collectors.feeds.sandbox.stand_ins:STAND_INS",
    demo="tsuzuki.collectors.feeds.demo:DEMO",
    bench="bench.feeds",
)
