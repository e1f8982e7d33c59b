"""Log lines with colours: the escape sequences of a terminal as parts with a class; all others become visible."""

import re
from typing import NamedTuple

from tsuzuki.model.visible_text import neutralise

SEQUENCE = re.compile(r"\x1b\[([0-9;]{0,40})m")
COLOURS = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


class Part(NamedTuple):
    text: str
    css: str


def without_ansi(text: str) -> str:
    """The text alone."""
    return SEQUENCE.sub("", text)


def parts_of(line: str) -> list[Part]:
    """The line in order. A line without colours is one part."""
    found: list[Part] = []
    bold, colour, at = False, "", 0
    for match in SEQUENCE.finditer(line):
        _append(found, line[at : match.start()], bold, colour)
        at = match.end()
        for code in (int(text or 0) for text in match[1].split(";")):
            if code == 0:
                bold, colour = False, ""
            elif code == 1:
                bold = True
            elif 30 <= code <= 37 or 90 <= code <= 97:
                colour = COLOURS[code % 10]
            elif code == 39:
                colour = ""
    _append(found, line[at:], bold, colour)
    return found


def _append(found: list[Part], text: str, bold: bool, colour: str) -> None:
    if text:
        css = " ".join(
            name for name in ("ansi-bold" if bold else "", colour and f"ansi-{colour}") if name
        )
        shown = "\t".join(neutralise(part) for part in text.split("\t"))
        found.append(Part(shown, css))
