"""The news of the demo: a site with two feeds, in which a new article appears from time to time."""

from datetime import datetime, timedelta

from tsuzuki.collectors.feeds.sandbox.feed_site.content import Article
from tsuzuki.collectors.feeds.sandbox.feed_site.demo import ENGLISH_FEED, make_demo
from tsuzuki.collectors.feeds.sandbox.feed_site.site import FeedSite

REPORTS = (
    (
        "The ferry to the islands runs all winter",
        "The harbour office keeps the island ferry running through the winter. It leaves at eight and at four.",
    ),
    (
        "A library opens in the old railway station",
        "The town opened its second library on Tuesday. It holds forty thousand books and a room for the very young.",
    ),
    (
        "Three streets become quiet streets",
        "From next month three streets near the market are closed to through traffic. Deliveries end at ten.",
    ),
    (
        "The tide gauge is a hundred years old",
        "The tide gauge at the pier has been read every hour for a hundred years. Its records are open to all.",
    ),
    (
        "Solar roofs for every school",
        "By spring every school has a solar roof. Together they make as much power as two thousand households use.",
    ),
    (
        "The bakers' market moves to the square",
        "The bakers' market leaves the hall for the square while the roof is mended. It stays there until June.",
    ),
    (
        "A swift tower stands by the river",
        "Volunteers built a tower with ninety nests for swifts. The first birds are expected in May.",
    ),
    (
        "Water meters can be read at home",
        "The water works replace the last of the old meters. The new ones show their figures on a page of one's own.",
    ),
)


def make_news(*, since: datetime) -> FeedSite:
    """The site, whose newest article was published an hour before."""
    site = make_demo(traps=False)
    articles = {one.name: one for feed in site.feeds for one in site.articles(feed)}.values()
    dates = [one.published for one in articles if isinstance(one.published, datetime)]
    later = since - timedelta(hours=1) - max(dates)
    for one in articles:
        if isinstance(one.published, datetime):
            site.edit_article(one, published=one.published + later)
    return site


def publish(site: FeedSite, number: int, *, at: datetime) -> Article:
    """Add the report of this number to the English feed; after the last the first one follows again."""
    title, text = REPORTS[number % len(REPORTS)]
    name = f"report-{at:%Y%m%d-%H%M%S}"
    article = Article(
        name=name,
        path=f"/en/{name}",
        title=title,
        text=text,
        published=at,
        authors=("Ann Lee",),
        categories=("town",),
    )
    return site.add_article(ENGLISH_FEED, article)
