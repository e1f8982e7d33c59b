"""Renders templates: everything escaped, an unknown name an error, and the policy that lets only our own files run."""

import gzip
from collections.abc import Callable
from functools import cache
from importlib.metadata import version
from typing import Any

from fastapi import Response
from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template
from markupsafe import Markup

from tsuzuki.web.pages.ansi import parts_of
from tsuzuki.web.pages.assets import asset_url
from tsuzuki.web.pages.audit_words import audit_words
from tsuzuki.web.pages.extension import extensions, folders
from tsuzuki.web.pages.flash import forget_flash
from tsuzuki.web.pages.formats import FILTERS
from tsuzuki.web.pages.job_cells import CELL_FILTERS, ENDED_TOGETHER
from tsuzuki.web.pages.language import LANGUAGES, translations
from tsuzuki.web.pages.links import path_part
from tsuzuki.web.pages.viewer import FRAGMENT_HEADER, Viewer
from tsuzuki.web.pages.words import WORDS, Word, refusal_title

COMPRESSED_MIN_BYTES = 1000
COMPRESSION_LEVEL = 4
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
        "require-trusted-types-for 'script'",
        "trusted-types tsuzuki",
    )
)
BADGE = Markup(
    '<span class="badge tone-{}"><svg class="icon" aria-hidden="true"><use href="#i-{}"/></svg>{}</span>'
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "same-origin",  # without a referrer a form would be sent with a null Origin
    "Vary": f"Accept-Encoding, Accept-Language, Cookie, {FRAGMENT_HEADER}",
}


@cache
def environment(language: str) -> Environment:
    """Templates with the words of a language."""
    built = Environment(
        loader=FileSystemLoader(folders("templates")),
        autoescape=True,
        undefined=StrictUndefined,
        extensions=["jinja2.ext.i18n", "jinja2.ext.do"],
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
    )
    built.filters.update(FILTERS | CELL_FILTERS)
    built.globals.update(
        words=WORDS,
        ended_together=ENDED_TOGETHER,
        refusal_title=refusal_title,
        ansi_parts=parts_of,
        asset_url=asset_url,
        audit_words=audit_words(),
        path_part=path_part,
        languages=LANGUAGES,
        extension_icons={k: v for one in extensions() for k, v in one.icons.items()},
        product_version=version("tsuzuki"),
        refusal=None,
    )
    # The method is one of the extension, which its type does not name.
    install: Any = built
    install.install_gettext_translations(translations(language), newstyle=True)
    translate = _translate_by(language)
    built.globals.update(_=translate, badge_of=_badges_by(translate))
    return built


def _translate_by(language: str) -> Callable[..., Markup]:
    """`_` of the templates: a page says most of its words many times, so each is looked up once."""
    find = cache(translations(language).gettext)

    def translate(text: str, /, **values: Any) -> Markup:
        found = Markup(find(text))  # noqa: S704 - a message of ours; values are escaped
        return found % values if values else found

    return translate


def _badges_by(translate: Callable[..., Markup]) -> Callable[[Word], Markup]:
    @cache
    def badge(word: Word) -> Markup:
        return BADGE.format(word.tone, word.icon, translate(word.text))

    return badge


def render_page(
    viewer: Viewer,
    template: str | Template,
    values: dict[str, Any],
    *,
    status: int = 200,
    headers: dict[str, str] | None = None,
) -> Response:
    """A page of ours. A message of the request before is shown once."""
    text = environment(viewer.language).get_template(template).render(**values, viewer=viewer)
    content = text.encode("utf-8", "replace")
    given = {**HEADERS, "Content-Language": viewer.language, **(headers or {})}
    if viewer.accepts_gzip and len(content) >= COMPRESSED_MIN_BYTES:
        content = gzip.compress(content, COMPRESSION_LEVEL, mtime=0)
        given["Content-Encoding"] = "gzip"
    response = Response(content, status, given, "text/html")
    if viewer.flash is not None and not viewer.is_fragment:
        forget_flash(response)
    return response
