"""A feed as a document: RSS 2.0, Atom 1.0 or RSS 1.0 (RDF), with what the feed leaves out left out."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import UTC, datetime
from email.utils import format_datetime
from html import escape
from typing import Final

from .content import ASSIGNED, Article, Enclosure, Feed, Format, MediaContent
from .damage import damage

NAMESPACES: Final = (
    'xmlns:content="http://purl.org/rss/1.0/modules/content/" '
    'xmlns:dc="http://purl.org/dc/elements/1.1/" '
    'xmlns:media="http://search.yahoo.com/mrss/"'
)
CONTENT_TYPES: Final = {
    Format.RSS2: "application/rss+xml",
    Format.ATOM: "application/atom+xml",
    Format.RSS1: "application/rdf+xml",
}


def feed_document(feed: Feed, articles: Iterable[Article], *, base: str) -> bytes:
    """The bytes of the feed that lists these articles, in this order."""
    declared = f' encoding="{feed.charset.declared}"' if feed.charset.declared else ""
    made = {Format.RSS2: _rss2, Format.ATOM: _atom, Format.RSS1: _rss1}[feed.format]
    listed = list(articles)
    parts = [f'<?xml version="1.0"{declared}?>\n', *made(feed, listed)]
    document = "".join(parts)
    if listed:
        for kind in feed.damages:
            document = damage(document, kind)
    return feed.charset.encode(document.replace("{base}", base))


def feed_content_type(feed: Feed) -> str:
    kind = CONTENT_TYPES[feed.format] if feed.content_type is None else feed.content_type
    return f"{kind}; charset={feed.charset.header}" if feed.charset.header else kind


def link_of(feed: Feed, article: Article) -> str | None:
    return f"{feed.link_base}{article.path}" if article.link == ASSIGNED else article.link


def _guid_of(feed: Feed, article: Article) -> str | None:
    """In RSS 1.0 the identity of an item is its link."""
    if article.guid != ASSIGNED:
        return article.guid
    return (
        link_of(feed, article) if feed.format is Format.RSS1 else f"tag:feed.example,{article.name}"
    )


def _rss2(feed: Feed, articles: list[Article]) -> Iterator[str]:
    yield f'<rss version="2.0" xmlns:atom="http://www.w3.org/2005/Atom" {NAMESPACES}>\n<channel>\n'
    yield _element("title", feed.title) + _element("link", "{base}/")
    yield _element("description", feed.description) + _element("language", feed.language)
    yield _empty("atom:link", {"rel": "self", "href": f"{{base}}{feed.path}"})
    for article in articles:
        yield "<item>\n"
        yield _element("title", article.title) + _element("link", link_of(feed, article))
        yield _element("guid", _guid_of(feed, article), isPermaLink="false")
        yield _element("pubDate", _mail_date(article.published))
        yield _element("atom:updated", _iso_date(article.updated))
        yield _html("description", article.summary, feed)
        yield from (_element("dc:creator", author) for author in article.authors)
        yield from (_element("category", category) for category in article.categories)
        yield _html("content:encoded", article.content, feed)
        yield from map(_enclosure, article.enclosures)
        yield from map(_media, article.media)
        yield "</item>\n"
    yield "</channel>\n</rss>\n"


def _atom(feed: Feed, articles: list[Article]) -> Iterator[str]:
    language = escape(feed.language)
    yield f'<feed xmlns="http://www.w3.org/2005/Atom" xml:lang="{language}" {NAMESPACES}>\n'
    yield _element("title", feed.title) + _element("subtitle", feed.description)
    yield _element("id", f"tag:feed.example,{feed.path}")
    yield _empty("link", {"rel": "self", "href": f"{{base}}{feed.path}"})
    for article in articles:
        yield "<entry>\n"
        yield _element("title", article.title) + _element("id", _guid_of(feed, article))
        link = link_of(feed, article)
        if link is not None:
            yield _empty("link", {"rel": "alternate", "href": link})
        yield _element("published", _iso_date(article.published))
        yield _element("updated", _iso_date(article.updated or article.published))
        yield _html("summary", article.summary, feed, type="html")
        yield _html("content", article.content, feed, type="html")
        for author in article.authors:
            yield f"<author>{_element('name', author)}</author>\n"
        yield from (_empty("category", {"term": category}) for category in article.categories)
        yield from map(_atom_enclosure, article.enclosures)
        yield from map(_media, article.media)
        yield "</entry>\n"
    yield "</feed>\n"


def _rss1(feed: Feed, articles: list[Article]) -> Iterator[str]:
    yield '<rdf:RDF xmlns="http://purl.org/rss/1.0/" '
    yield 'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" '
    yield f'{NAMESPACES} xml:lang="{escape(feed.language)}">\n'
    yield f'<channel rdf:about="{{base}}{escape(feed.path)}">\n'
    yield _element("title", feed.title) + _element("link", "{base}/")
    yield _element("description", feed.description) + _element("dc:language", feed.language)
    yield "<items><rdf:Seq>\n"
    for article in articles:
        yield _empty("rdf:li", {"rdf:resource": link_of(feed, article) or ""})
    yield "</rdf:Seq></items>\n</channel>\n"
    for article in articles:
        about = _guid_of(feed, article)
        yield "<item>\n" if about is None else f'<item rdf:about="{escape(about)}">\n'
        yield _element("title", article.title) + _element("link", link_of(feed, article))
        yield _html("description", article.summary, feed)
        yield _element("dc:date", _iso_date(article.published))
        yield from (_element("dc:creator", author) for author in article.authors)
        yield from (_element("dc:subject", category) for category in article.categories)
        yield _html("content:encoded", article.content, feed)
        yield from map(_media, article.media)
        yield "</item>\n"
    yield "</rdf:RDF>\n"


def _enclosure(one: Enclosure) -> str:
    fields = {"url": one.url, "type": one.content_type, "length": str(one.length)}
    return _empty("enclosure", fields)


def _atom_enclosure(one: Enclosure) -> str:
    fields = {"href": one.url, "type": one.content_type, "length": str(one.length)}
    return _empty("link", {"rel": "enclosure", **fields})


def _media(one: MediaContent) -> str:
    texts = _element("media:title", one.title) + _element("media:description", one.description)
    return f"<media:content{_attributes({'url': one.url, 'type': one.content_type})}>{texts}</media:content>\n"


def _element(name: str, text: str | None, **attributes: str) -> str:
    if text is None:
        return ""
    return f"<{name}{_attributes(attributes)}>{escape(text, quote=False)}</{name}>\n"


def _html(name: str, text: str | None, feed: Feed, **attributes: str) -> str:
    if text is None or not feed.cdata:
        return _element(name, text, **attributes)
    inside = text.replace("]]>", "]]]]><![CDATA[>")
    return f"<{name}{_attributes(attributes)}><![CDATA[{inside}]]></{name}>\n"


def _empty(name: str, attributes: Mapping[str, str]) -> str:
    return f"<{name}{_attributes(attributes)}/>\n"


def _attributes(attributes: Mapping[str, str]) -> str:
    return "".join(f' {name}="{escape(value)}"' for name, value in attributes.items())


def _mail_date(moment: datetime | str | None) -> str | None:
    return format_datetime(moment) if isinstance(moment, datetime) else moment


def _iso_date(moment: datetime | str | None) -> str | None:
    if not isinstance(moment, datetime):
        return moment
    text = moment.isoformat(timespec="seconds")
    return text.replace("+00:00", "Z") if moment.tzinfo in (UTC, None) else text
