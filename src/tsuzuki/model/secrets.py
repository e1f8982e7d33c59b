"""Masks secrets: the credentials of URLs in any text, in time linear in its length; and in structured values what
is known to be secret, by its key or by its value.

A raw '@', '/' or '?' in a password is a mistake, but it must not reveal the rest of it: the password is
everything up to the last '@' of the word. More may be masked than is secret, never less.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

from tsuzuki.model.jsontext import DEPTH_MAX
from tsuzuki.model.sentence import Sentence

MASK = "***"

_URL = re.compile(r"(?P<scheme>[\w+.-]*)://(?P<rest>\S*)")
_PORT = re.compile(r":\d+(?:[/?#]|$)")
_SECRET_PARAMETER = re.compile(
    r"(?<=[?&])([\w.-]*(?:password|passwd|pwd|secret|token|key|signature)=)[^\s&#\"'<>]+",
    re.IGNORECASE,
)
_USER_IS_PUBLIC = ("postgres", "redis", "ssh", "git", "unix")
"""Schemes whose `user@host` has no secret in it. In `https://token@host` it is one."""


_SECRET_KEY = re.compile(
    r"(?:^|_)(?:password|passwd|pwd|passphrase|secret|token|api_?key|access_key|private_key|signing_key"
    r"|authorization|credentials?|cookie|client_secret)$"
)
_WORD_BREAK = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[-. ]")
SHOWN_DEPTH_MAX = 2 * DEPTH_MAX
"""What a handler answered may be nested deeper than what is given to one, and must not keep a list from being shown."""
KNOWN_LENGTH_MIN = 6
"""A shorter value would be masked in the middle of ordinary words."""


class SecretMask:
    """Masks what is secret in values that are shown: by key (`password`, `apiKey`, `GITLAB_TOKEN`), by a value that
    is known to be secret, and in URLs."""

    def __init__(self, known: Callable[[], Iterable[str]] = tuple) -> None:
        """`known` is called when the first text is masked: it may have to read files."""
        self._read_known = known

    @cached_property
    def _known(self) -> re.Pattern[str] | None:
        known = {value for value in self._read_known() if len(value) >= KNOWN_LENGTH_MIN}
        # The longest first: one secret may be part of another.
        longest_first = sorted(known, key=len, reverse=True)
        return re.compile("|".join(map(re.escape, longest_first))) if known else None

    def text(self, text: str) -> str:
        masked = self._known.sub(MASK, text) if self._known else text
        return mask_secrets(masked)

    def value(self, value: Any) -> Any:
        """A JSON value with everything secret in it masked, and what is nested too deep to be shown."""
        return self._inner(value, 0)

    def _inner(self, value: Any, depth: int) -> Any:
        if depth > SHOWN_DEPTH_MAX and isinstance(value, Mapping | list | tuple):
            return MASK
        match value:
            case Sentence():
                return value.with_texts(self.text)
            case str():
                return self.text(value)
            case Mapping():
                return {key: self._of_key(key, one, depth) for key, one in value.items()}
            case list() | tuple():
                return [self._inner(one, depth + 1) for one in value]
            case _:
                return value

    def _of_key(self, key: Any, value: Any, depth: int) -> Any:
        if value is None or isinstance(value, bool) or not is_secret_key(str(key)):
            return self._inner(value, depth + 1)
        return MASK


def is_secret_key(key: str) -> bool:
    """Whether the value of a key by this name is a secret."""
    return _SECRET_KEY.search(_WORD_BREAK.sub("_", key).lower()) is not None


def mask_secrets(text: str) -> str:
    """The text with the passwords and tokens of the URLs in it masked."""
    if "://" not in text:
        return text
    return _SECRET_PARAMETER.sub(rf"\g<1>{MASK}", _URL.sub(_masked_url, text))


def _masked_url(url: re.Match[str]) -> str:
    scheme, rest = url["scheme"], url["rest"]
    end = rest.rfind("@")
    if end < 0:
        return url[0]
    host_and_more = rest[end:]
    before_at = rest[: rest.index("@")]
    user, colon, _ = before_at.partition(":")
    if any(mark in user for mark in "/?#"):  # the '@' is in a path: there is no user
        return url[0]
    if not colon:
        is_public = scheme.lower().startswith(_USER_IS_PUBLIC)
        return url[0] if is_public else f"{scheme}://{MASK}{host_and_more}"
    if _PORT.match(rest, len(user)) or len(user) + 1 == end:  # an empty password is none
        return url[0]
    return f"{scheme}://{user}:{MASK}{host_and_more}"
