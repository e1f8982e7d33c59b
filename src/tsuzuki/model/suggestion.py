"""Suggestions for misspelt names: "Did you mean …?"."""

from collections import Counter
from collections.abc import Iterable, Mapping
from difflib import get_close_matches


def closest(word: str, known: Iterable[str]) -> str | None:
    """The known word most similar to `word`, ignoring case; None if none is similar. `retry` is similar to
    `max_retries`, by a part that no other known word has."""
    by_folded = {name.casefold(): name for name in sorted(known)}
    return _match(word, by_folded) or _match(word, _by_own_part(by_folded))


def _match(word: str, by_folded: Mapping[str, str]) -> str | None:
    folded = word.casefold()
    matches = get_close_matches(folded, by_folded)
    # First letters are rarely mistyped: "munday" is nearer to monday than to sunday.
    matches.sort(key=lambda match: match[:1] != folded[:1])
    return by_folded[matches[0]] if matches else None


def _by_own_part(by_folded: Mapping[str, str]) -> dict[str, str]:
    parts = Counter(part for name in by_folded for part in name.split("_"))
    return {
        part: name
        for folded, name in by_folded.items()
        for part in folded.split("_")
        if parts[part] == 1
    }


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A sentence to put before a hint, with a trailing space; empty if no known word is similar."""
    match = closest(word, known)
    return f'Did you mean "{match}"? ' if match else ""
