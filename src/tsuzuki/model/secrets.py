"""Masks the credentials of URLs in any text, in time linear in its length.

A raw '@', '/' or '?' in a password is a mistake, but it must not reveal the rest of it: the password is
everything up to the last '@' of the word. More may be masked than is secret, never less.
"""

import re

MASK = "***"

_URL = re.compile(r"(?P<scheme>[\w+.-]*)://(?P<rest>\S*)")
_PORT = re.compile(r":\d+(?:[/?#]|$)")
_SECRET_PARAMETER = re.compile(
    r"(?<=[?&])([\w.-]*(?:password|passwd|pwd|secret|token|key|signature)=)[^\s&#\"'<>]+",
    re.IGNORECASE,
)
_USER_IS_PUBLIC = ("postgres", "redis", "ssh", "git", "unix")
"""Schemes whose `user@host` has no secret in it. In `https://token@host` it is one."""


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
