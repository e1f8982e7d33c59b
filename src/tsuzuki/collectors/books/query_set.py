"""The queries of a job as one set: its hash, and the one search it stands for.

The hash is, bit for bit, what this JavaScript computes:

    sha256(queries.map(q => q.trim().replace(/\\s+/g, ' ')).sort().join('\\n')).digest('hex')

JavaScript's white space is not Python's (U+FEFF is, U+0085 and U+001C to U+001F are not), its `sort`
compares UTF-16 code units, and its UTF-8 has U+FFFD for half a surrogate pair. Case is kept: a search
may mean something else in another one.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256

SHORT_HASH_CHARACTERS = 16

_WHITE_SPACE = (
    "\t\n\v\f\r \u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009\u200a"
    "\u2028\u2029\u202f\u205f\u3000\ufeff"
)
_RUN_OF_SPACE = re.compile(f"[{_WHITE_SPACE}]+")
_HALF_OF_A_PAIR = re.compile("[\ud800-\udfff]")


def normalised(queries: Sequence[str]) -> list[str]:
    """Every query without the white space that means nothing, in JavaScript's order."""
    trimmed = (_RUN_OF_SPACE.sub(" ", query.strip(_WHITE_SPACE)) for query in queries)
    return sorted(map(_with_whole_pairs, trimmed), key=_code_units)


def compute_query_set_hash(queries: Sequence[str]) -> str:
    """All 64 characters: what the database holds."""
    text = _HALF_OF_A_PAIR.sub("\ufffd", "\n".join(normalised(queries)))
    return sha256(text.encode()).hexdigest()


def short_hash(query_set_hash: str) -> str:
    """What a log shows."""
    return query_set_hash[:SHORT_HASH_CHARACTERS]


def search_text(queries: Sequence[str]) -> str:
    """The one search of the set. Like its hash it does not depend on the order of the queries:
    another order would be another list under the same cursor."""
    return " OR ".join(normalised(queries))


@dataclass(frozen=True, kw_only=True)
class BookSearch:
    """What is searched for, and the options that shape the list of what is found."""

    text: str
    print_type: str | None = None
    lang_restrict: str | None = None
    order_by: str | None = None

    @property
    def list_options(self) -> dict[str, str]:
        """Those that were given, under the names of the source."""
        options = {
            "printType": self.print_type,
            "langRestrict": self.lang_restrict,
            "orderBy": self.order_by,
        }
        return {name: value for name, value in options.items() if value is not None}


def _with_whole_pairs(text: str) -> str:
    """Two halves side by side are one character to JavaScript."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")


def _code_units(text: str) -> bytes:
    return text.encode("utf-16-be", "surrogatepass")
