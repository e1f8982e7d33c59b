"""How a query matches a name: the one definition of exact, prefix, substring and parts.

The index only proposes names. Whether and how well a name matches is decided here, for stored and freshly parsed
names alike.
"""

from enum import IntEnum

from tsuzuki.collectors.codeindex.queries.names import parts_of


class Match(IntEnum):
    """The better match is the smaller one."""

    EXACT = 0
    CASE = 1
    """Equal but for upper and lower case."""
    PREFIX = 2
    SUBSTRING = 3
    PARTS = 4
    """Each part of the query begins a part of the name, in the same order: `jobMan` in `BuildJobManager`."""


def match_name(query: str, name: str) -> Match | None:
    """How `query` matches `name`; None if it does not."""
    if query == name:
        return Match.EXACT
    wanted, folded = query.casefold(), name.casefold()
    if wanted == folded:
        return Match.CASE
    if folded.startswith(wanted):
        return Match.PREFIX
    if wanted in folded:
        return Match.SUBSTRING
    return Match.PARTS if _parts_match(query_parts(query), parts_of(name)) else None


def query_parts(query: str) -> list[str]:
    """The parts of a query. Capitals alone are the initials of a name: `BJM` asks for `BuildJobManager`."""
    if query.isalpha() and query.isupper():
        return [letter.casefold() for letter in query]
    return parts_of(query)


def _parts_match(wanted: list[str], parts: list[str]) -> bool:
    if not wanted:
        return False
    remaining = iter(parts)
    return all(any(part.startswith(one) for part in remaining) for one in wanted)
