"""The words of a text that may be identifiers: cheap, and none is missing.

Words of comments and strings are among them. They only say in which files a name is worth looking for.
"""

import re

from tsuzuki.collectors.codeindex.languages import Language

_WORD = re.compile(r"[^\W\d][\w$]*|\$[\w$]*")
_WORD_OF_JAVASCRIPT = re.compile(r"#?(?:[^\W\d]|\$)[\w$]*")
"""A private member has its `#` in its name."""

_WORD_OF_PHP = re.compile(r"[^\W\d]\w*")
"""A variable is called without its `$`."""

_WORDS = {
    "javascript": _WORD_OF_JAVASCRIPT,
    "typescript": _WORD_OF_JAVASCRIPT,
    "tsx": _WORD_OF_JAVASCRIPT,
    "php": _WORD_OF_PHP,
}
WORD_CHARACTERS_MAX = 200


def words_of(language: Language, text: bytes) -> tuple[str, ...]:
    """Each once, in no promised order; none of a language whose names are no words of their own."""
    if not language.has_identifiers:
        return ()
    pattern = _WORDS.get(language.name, _WORD)
    found = set(pattern.findall(text.decode("utf-8", "replace")))
    return tuple(word for word in found if len(word) <= WORD_CHARACTERS_MAX)
