"""A web site with feeds, over real HTTP: feeds of every format and fault, pages, PDFs, redirects.

    site = FeedSite()
    news = site.add_feed(Feed(path="/news.xml", format=Format.ATOM))
    first = site.add_article(news, Article(title="A bridge opens", text="The bridge was opened today."))
    with site.serve() as server:                       # a free port of 127.0.0.1
        client.get(f"{server.url}/news.xml")
        site.edit_article(first, text="The bridge was opened at noon.")
        site.edit_feed(news, delivery=Delivery(status=503, retry_after="120"))
        assert server.count("/news.xml") == 1

`content` has the values, `delivery` the ways to send them, `damage` what breaks a document, `bombs` and `pdf`
the bodies that hurt, `traps` a ready feed for each of these, and `demo` a site to look at. `server.faults` works
as for every stand-in (slow, cut, reset), and `/_sandbox` has routes that change the site (`control_routes`).
"""

from .content import (
    ASSIGNED,
    Article,
    ArticlePage,
    Charset,
    Enclosure,
    Feed,
    File,
    Format,
    Later,
    MediaContent,
)
from .damage import Damage
from .delivery import Compression, Conditional, DateKind, EtagKind, FeedDelivery
from .site import FeedSite

__all__ = [
    "ASSIGNED",
    "Article",
    "ArticlePage",
    "Charset",
    "Compression",
    "Conditional",
    "Damage",
    "DateKind",
    "Enclosure",
    "EtagKind",
    "Feed",
    "FeedDelivery",
    "FeedSite",
    "File",
    "Format",
    "Later",
    "MediaContent",
]
