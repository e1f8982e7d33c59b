"""Which characters act on a terminal, judged by Unicode's own tables."""

import unicodedata

DIRECTION_MARKS = {"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"}


def acts_on_a_terminal(character: str) -> bool:
    return (
        unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"}
        or unicodedata.bidirectional(character) in DIRECTION_MARKS
    )
