"""Suggestions for misspelt names: "Did you mean …?"."""

from collections.abc import Iterable
from difflib import get_close_matches


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word most similar to `word`, ignoring case; None if none is similar."""
    by_folded = {name.casefold(): name for name in sorted(known)}
    folded = word.casefold()
    matches = get_close_matches(folded, by_folded)
    # First letters are rarely mistyped: "munday" is nearer to monday than to sunday.
    matches.sort(key=lambda match: match[:1] != folded[:1])
    return by_folded[matches[0]] if matches else None


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence to put before a hint, with a trailing space; empty if no known word is similar."""
    match = closest(word, known)
    return f'Did you mean "{match}"? ' if match else ""
