"""Messages and hints of errors in the language of the page.

The services raise them in English, for every interface. The catalogues in `locale/<language>/errors` have each text
with numbered places for its values (`there is no job {1}`); a text is translated if it is one of these with values in
its places, and stays English otherwise. A value that is such a text itself is translated too; the one at `{rest}`
must be, and the one at `{word}` has no spaces.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import NamedTuple

from babel.messages.pofile import read_po
from markupsafe import Markup

from tsuzuki.web.pages.language import catalogue_files, translations
from tsuzuki.web.pages.words import STATES

DEPTH_MAX = 4
_REST = "rest"
_WORD = "word"
_PLACE = re.compile(r"\{(\d+|rest|word)\}")
_CODE = re.compile(r"`([^`]*)`")
_STATES = {state.value: word.text for state, word in STATES.items()}


class ErrorText(NamedTuple):
    """A text of the catalogue: what stands between its places, their names, and its translation in pieces of the
    same kind."""

    text: str
    pieces: tuple[str, ...]
    names: tuple[str, ...]
    said: tuple[Markup, ...]
    said_names: tuple[str, ...]

    def filled(self, values: Mapping[str, Markup]) -> Markup:
        first, *others = self.said
        pairs = zip(self.said_names, others, strict=True)
        return first + Markup().join(values[name] + piece for name, piece in pairs)

    def values(self, text: str) -> dict[str, str] | None:
        """What stands in the places, if this is the text; in time linear in its length."""
        first, *middle = self.pieces
        if not middle:
            return {} if text == first else None
        last = middle.pop()
        if len(text) < len(first) + len(last) or not (
            text.startswith(first) and text.endswith(last)
        ):
            return None
        remaining = text[len(first) : len(text) - len(last)]
        found = []
        for piece in middle:
            value, is_there, remaining = remaining.partition(piece)
            if not is_there:
                return None
            found.append(value)
        values = dict(zip(self.names, (*found, remaining), strict=True))
        return None if " " in values.get(_WORD, "") else values


def translated_text(language: str, text: str, show: Callable[[str], Markup]) -> Markup | None:
    """The text in this language, each value as `show` makes it; None without a translation."""
    return _translated(language, text, show, 1)


def _translated(
    language: str, text: str, show: Callable[[str], Markup], depth: int
) -> Markup | None:
    text = text.strip()
    for one in _candidates(language, text) if depth <= DEPTH_MAX else ():
        values = one.values(text)
        if values is None:
            continue
        said = {name: _translated(language, values[name], show, depth + 1) for name in one.names}
        if said.get(_REST, "") is not None:
            shown = {name: said[name] or _value(language, values[name], show) for name in said}
            return one.filled(shown)
    return None


def _value(language: str, value: str, show: Callable[[str], Markup]) -> Markup:
    """The state of a run in the words of the page; what stands in backquotes as code."""
    word = _STATES.get(value)
    if word is not None:
        return Markup.escape(translations(language).gettext(word))
    code = _CODE.fullmatch(value)
    if code is not None:
        return Markup('<code translate="no">{}</code>').format(show(code[1]))
    return show(value)


@cache
def error_texts(language: str) -> tuple[ErrorText, ...]:
    """The texts of a language: first those around another text, then the one that has most of its own."""
    return tuple(sorted(_read(language), key=_precedence))


def _candidates(language: str, text: str) -> tuple[ErrorText, ...]:
    index = _by_first_character(language)
    return index.get(text[:1], index[""])


@cache
def _by_first_character(language: str) -> Mapping[str, tuple[ErrorText, ...]]:
    """What a text can be by its first character; by `""`, what any text can be."""
    known = error_texts(language)
    signs = {one.pieces[0][:1] for one in known} | {""}
    return {sign: tuple(one for one in known if one.pieces[0][:1] in ("", sign)) for sign in signs}


def _precedence(one: ErrorText) -> tuple[bool, int, str]:
    return _REST not in one.names, -sum(map(len, one.pieces)), one.text


def _read(language: str) -> Iterator[ErrorText]:
    for file in catalogue_files(f"{language}/errors/*.po"):
        with file.open("rb") as content:
            for entry in read_po(content, locale=language):
                if entry.id and entry.string:
                    yield _error_text(str(entry.id), str(entry.string))


def _error_text(text: str, translation: str) -> ErrorText:
    pieces, said = _PLACE.split(text), _PLACE.split(_with_code(translation))
    return ErrorText(
        text=text,
        pieces=tuple(pieces[::2]),
        names=tuple(pieces[1::2]),
        said=tuple(map(Markup, said[::2])),
        said_names=tuple(said[1::2]),
    )


def _with_code(translation: str) -> str:
    """As HTML; what stands in backquotes is code."""
    return _CODE.sub(r'<code translate="no">\1</code>', str(Markup.escape(translation)))
