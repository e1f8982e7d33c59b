"""Text from outside, as both databases can store it."""

import re

_NOT_STORABLE = re.compile("[\x00\ud800-\udfff]")


def storable(text: str) -> str:
    """The text with U+FFFD for every NUL and every half of a surrogate pair: PostgreSQL can store neither."""
    if text.isascii() and "\x00" not in text:
        return text
    return _NOT_STORABLE.sub("\ufffd", text)
