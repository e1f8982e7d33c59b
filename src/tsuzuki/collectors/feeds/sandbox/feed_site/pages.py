"""The page of an article as HTML: its text among what surrounds it on a real site."""

from dataclasses import dataclass
from html import escape

from .content import Article, File


@dataclass(frozen=True, kw_only=True)
class Wording:
    """Texts around an article. They hold none of the words by which an article is judged."""

    skip: str
    menu: tuple[str, ...]
    cookies: str
    attachments: str
    related: str
    footer: str


JAPANESE = Wording(
    skip="本文へ移動",
    menu=("ホーム", "組織案内", "所管法令", "お問い合わせ"),
    cookies="このサイトではクッキーを使用しています。",
    attachments="添付ファイル",
    related="関連リンク",
    footer="〒000-0000 架空市見本町1-1 代表電話 00-0000-0000",
)
ENGLISH = Wording(
    skip="Skip to content",
    menu=("Home", "About", "Archive", "Contact"),
    cookies="This site uses cookies.",
    attachments="Attachments",
    related="Related links",
    footer="Published by the Example Works. All names are invented.",
)


def article_page(article: Article, *, language: str, base: str) -> bytes:
    words = JAPANESE if language.startswith("ja") else ENGLISH
    charset = article.page.charset
    meta = f'<meta charset="{charset.declared}">' if charset.declared else ""
    title = escape(article.title or "")
    before, after = (_before(words), _after(words)) if article.page.boilerplate else ("", "")
    document = (
        f'<!DOCTYPE html>\n<html lang="{escape(language)}">\n<head>{meta}<title>{title}</title>'
        f'<link rel="canonical" href="{{base}}{escape(article.path)}"></head>\n<body>\n{before}'
        f"<main><article>\n<h1>{title}</h1>\n{_paragraphs(article.text)}{article.page.markup}"
        f"{_attachments(article.attachments, words)}</article></main>\n{after}</body>\n</html>\n"
    )
    return charset.encode(document.replace("{base}", base))


def page_content_type(article: Article) -> str:
    header = article.page.charset.header
    kind = article.page.content_type
    return f"{kind}; charset={header}" if header else kind


def _paragraphs(text: str) -> str:
    parts = [part.strip() for part in text.split("\n\n") if part.strip()]
    return "".join(f"<p>{escape(part, quote=False)}</p>\n" for part in parts)


def _attachments(files: tuple[File, ...], words: Wording) -> str:
    if not files:
        return ""
    rows = "".join(
        f'<li><a href="{escape(file.path)}">{escape(file.label or file.path)}</a></li>'
        for file in files
    )
    return f"<h2>{words.attachments}</h2>\n<ul>{rows}</ul>\n"


def _before(words: Wording) -> str:
    menu = "".join(f'<li><a href="/">{entry}</a></li>' for entry in words.menu)
    return (
        f'<a class="skip" href="#main">{words.skip}</a>\n'
        f'<div class="cookie-notice">{words.cookies}</div>\n'
        f"<header><nav><ul>{menu}</ul></nav></header>\n"
    )


def _after(words: Wording) -> str:
    return (
        f"<aside><h2>{words.related}</h2><ul><li><a href='/'>{words.menu[0]}</a></li></ul></aside>\n"
        f"<footer>{words.footer}</footer>\n<script>window.visits = 1;</script>\n"
    )
