"""Redaction: takes tokens, passwords and e-mail addresses out of what other programs said.

What git or a server says about a failure may repeat the URL it was given, or name an author.
"""

import re
from collections.abc import Iterable

HIDDEN = "***"
WORDS_MAX = 500

_IN_URL = re.compile(r"(?P<scheme>\b[a-z][a-z0-9+.-]*://)[^/\s@]*@", re.IGNORECASE)
_ADDRESS = re.compile(r"[^\s<>()\[\]\"',;:]+@[^\s<>()\[\]\"',;:/]+")
_TOKEN = re.compile(
    r"(?P<name>\b(?:private[-_]token|access[-_]token|job[-_]token|authorization|password|secret)\b"
    r"[\"']?\s*[:=]\s*[\"']?(?:bearer\s+|basic\s+)?)[^\s\"'&]+"
    r"|\bgl[a-z]{2,6}-[\w-]{8,}",
    re.IGNORECASE,
)


def redacted(text: str, *, secrets: Iterable[str | None] = ()) -> str:
    """`text` on one line of bounded length, without `secrets` and without anything like them."""
    # The longest first: a secret may be part of another.
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, HIDDEN)
    text = _IN_URL.sub(r"\g<scheme>", text)
    text = _TOKEN.sub(lambda found: f"{found['name'] or ''}{HIDDEN}", text)
    text = _ADDRESS.sub(HIDDEN, text)
    text = " ".join(text.split())
    return text if len(text) <= WORDS_MAX else f"{text[: WORDS_MAX - 1]}…"
