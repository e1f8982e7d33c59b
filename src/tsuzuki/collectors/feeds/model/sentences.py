"""Sentences: the first ones of a text, in Japanese as in English, within a number of characters.

A line ends a sentence. Nothing is cut inside a character that is written with several code points.
"""

import re
import unicodedata
from collections.abc import Iterator

ELLIPSIS = "…"

_CLOSING = "」』）】〉》\"'”’)\\]"  # noqa: RUF001 -- the closing marks of Japanese and English
_END = re.compile(
    rf"[。！？｡][{_CLOSING}]*|[.!?…]+[{_CLOSING}]*(?=\s|$)"  # noqa: RUF001 -- Japanese marks
)
_ABBREVIATION = re.compile(
    r"(?:\b(?:mr|mrs|ms|dr|prof|st|jr|sr|no|nos|vs|fig|eq|inc|ltd|co|corp|dept|approx|jan|feb|mar|apr|jun|jul|aug|"
    r"sep|sept|oct|nov|dec)|\b(?:[a-z]\.)*[a-z])\.$",
    re.IGNORECASE,
)
_WIDE = re.compile(r"[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
_JOINER = "\u200d"


def first_sentences(text: str, *, characters_max: int, without: str = "") -> str:
    """As many whole sentences from the start as fit. If not even the first does, its start. `without` is a line
    that is left out, such as the title that a page repeats."""
    taken = ""
    for sentence in sentences(text):
        if not taken and sentence == " ".join(without.split()):
            continue
        longer = _joined(taken, sentence)
        if len(longer) > characters_max:
            return taken or shortened(sentence, characters_max)
        taken = longer
    return taken


def sentences(text: str) -> Iterator[str]:
    """Each sentence of each line, with single spaces."""
    for line in text.splitlines():
        rest = " ".join(line.split())
        start = 0
        for found in _END.finditer(rest):
            sentence = rest[start : found.end()]
            if _ABBREVIATION.search(sentence) and found.end() < len(rest):
                continue
            yield sentence.strip()
            start = found.end()
        if rest[start:].strip():
            yield rest[start:].strip()


def shortened(text: str, characters_max: int) -> str:
    """The start of a text with an ellipsis, cut between words if it has any."""
    if len(text) <= characters_max:
        return text
    end = max(characters_max - len(ELLIPSIS), 0)
    while end > 0 and _is_inside_character(text, end):
        end -= 1
    kept = text[:end]
    space = kept.rfind(" ")
    if space > end // 2 and not text[end : end + 1].isspace():
        kept = kept[:space]
    return kept.rstrip(" ,;:、，") + ELLIPSIS  # noqa: RUF001 -- Japanese commas


def _joined(taken: str, sentence: str) -> str:
    """Japanese sentences follow each other without a space."""
    if not taken:
        return sentence
    is_wide = _WIDE.match(taken[-1]) and _WIDE.match(sentence[0])
    return f"{taken}{sentence}" if is_wide else f"{taken} {sentence}"


def _is_inside_character(text: str, place: int) -> bool:
    """Whether a cut here would divide what a reader sees as one character."""
    before, after = text[place - 1], text[place]
    if _JOINER in (before, after) or unicodedata.category(after).startswith("M"):
        return True
    if "\U0001f3fb" <= after <= "\U0001f3ff" or "\U000e0020" <= after <= "\U000e007f":
        return True
    return _is_flag_letter(after) and _flag_letters_before(text, place) % 2 == 1


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def _flag_letters_before(text: str, place: int) -> int:
    start = place
    while start > 0 and _is_flag_letter(text[start - 1]):
        start -= 1
    return place - start
