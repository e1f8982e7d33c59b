"""Damage to the text of a feed document: what broken feeds in the wild look like.

Each kind is done to the first title, or to the end of the document; the other items stay as they are.
"""

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import partial

LAUGHS = 10
DECLARATION_END = "?>\n"


class Damage(StrEnum):
    BARE_AMPERSAND = "bare_ampersand"
    UNDEFINED_ENTITY = "undefined_entity"
    """`&nbsp;`, which XML does not know."""

    BLANK_LINES_FIRST = "blank_lines_first"
    """Before the XML declaration, which must be the first thing."""

    TRUNCATED = "truncated"
    """Cut off inside the last item, behind its title."""

    CONTROL_CHARACTER = "control_character"
    UNCLOSED_TAG = "unclosed_tag"
    UNDECLARED_PREFIX = "undeclared_prefix"
    ENTITY_BOMB = "entity_bomb"
    """Ten entities, each ten of the one before."""

    QUADRATIC_BOMB = "quadratic_bomb"
    """One long entity, named very often."""

    EXTERNAL_ENTITY = "external_entity"
    """A title that is the content of a file of the reader's machine."""

    EXTERNAL_DTD = "external_dtd"
    """A DTD that is to be fetched from the site."""


def damage(document: str, kind: Damage) -> str:
    """The document with this damage; it has one item at least."""
    return _DAMAGES[kind](document)


def _truncated(document: str) -> str:
    return document[: document.rindex("</title>") + len("</title>\n<li")]


def _entity_bomb(document: str) -> str:
    entities = ['<!ENTITY lol0 "lol">']
    entities += [
        f'<!ENTITY lol{number} "{f"&lol{number - 1};" * 10}">' for number in range(1, LAUGHS)
    ]
    return _in_title(_with_doctype(document, "\n".join(entities)), f"&lol{LAUGHS - 1};")


def _quadratic_bomb(document: str) -> str:
    entity = f'<!ENTITY long "{"x" * 50_000}">'
    return _in_title(_with_doctype(document, entity), "&long;" * 20_000)


def _external_entity(document: str) -> str:
    entity = '<!ENTITY file SYSTEM "file:///etc/passwd">'
    return _in_title(_with_doctype(document, entity), "&file;")


def _external_dtd(document: str) -> str:
    return _after_declaration(document, '<!DOCTYPE rss SYSTEM "{base}/outside.dtd">\n')


def _with_doctype(document: str, entities: str) -> str:
    return _after_declaration(document, f"<!DOCTYPE feed [\n{entities}\n]>\n")


def _after_declaration(document: str, text: str) -> str:
    return document.replace(DECLARATION_END, DECLARATION_END + text, 1)


def _item_title(document: str) -> int:
    """Where the text of the first item's title starts; the feed's own title is before any item."""
    item = min(
        position for tag in ("<item", "<entry") if (position := _find_item(document, tag)) >= 0
    )
    return (
        document.index("<title", item) + document[document.index("<title", item) :].index(">") + 1
    )


def _find_item(document: str, tag: str) -> int:
    """Not `<items>`, the table of contents of RSS 1.0."""
    positions = [document.find(tag + end) for end in (">", " ")]
    return min((position for position in positions if position >= 0), default=-1)


def _in_title(document: str, text: str) -> str:
    position = _item_title(document)
    return document[:position] + text + document[position:]


def _after_title(document: str, text: str) -> str:
    position = document.index("</title>", _item_title(document)) + len("</title>")
    return document[:position] + text + document[position:]


_DAMAGES: Mapping[Damage, Callable[[str], str]] = {
    Damage.BARE_AMPERSAND: partial(_in_title, text="Research & Development: "),
    Damage.UNDEFINED_ENTITY: partial(_in_title, text="Two&nbsp;words: "),
    Damage.BLANK_LINES_FIRST: lambda document: "\n\n  \n" + document,
    Damage.TRUNCATED: _truncated,
    Damage.CONTROL_CHARACTER: partial(_in_title, text="\x0b"),
    Damage.UNCLOSED_TAG: partial(_in_title, text="One<br>two: "),
    Damage.UNDECLARED_PREFIX: partial(_after_title, text="<vendor:rank>1</vendor:rank>"),
    Damage.ENTITY_BOMB: _entity_bomb,
    Damage.QUADRATIC_BOMB: _quadratic_bomb,
    Damage.EXTERNAL_ENTITY: _external_entity,
    Damage.EXTERNAL_DTD: _external_dtd,
}
