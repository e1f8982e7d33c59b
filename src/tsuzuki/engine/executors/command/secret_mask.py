"""Takes the values of known secrets out of what a command writes, before it is stored."""

from collections.abc import Iterable
from urllib.parse import unquote, urlsplit

from tsuzuki.model.secrets import MASK, mask_secrets

SECRET_CHARACTERS_MIN = 6
"""A shorter value is part of too many words, and no secret."""


class SecretMask:
    """Masks values as they are; of a value with several lines each line, of a URL its password too."""

    def __init__(self, values: Iterable[str]) -> None:
        parts = {part for value in values for part in _parts(value)}
        # The longest first: one secret may contain another.
        self._secrets = [
            part.encode("utf-8", "surrogateescape")
            for part in sorted(parts, key=len, reverse=True)
            if len(part) >= SECRET_CHARACTERS_MIN
        ]

    def __call__(self, output: bytes) -> bytes:
        for secret in self._secrets:
            output = output.replace(secret, MASK.encode())
        return output


def _parts(value: str) -> Iterable[str]:
    if "://" in value and mask_secrets(value) == value:
        return  # a URL without a password
    yield from (line.strip() for line in value.splitlines())
    try:
        password = urlsplit(value).password
    except ValueError:  # it is no URL
        return
    if password:
        yield from (password, unquote(password))
