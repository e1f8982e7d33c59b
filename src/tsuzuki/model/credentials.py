"""Secrets that we hand out: tokens, session secrets, setup codes, links. What they look like, and the stored hash.

All are random and long, so a fast hash protects them; passwords, which people choose, are hashed by
`services.access.passwords`. A token is `tsz_`, its id, its secret and a checksum: a scanner finds it in a file by its
prefix, and a token that was cut or mistyped is known without asking a database.
"""

import hashlib
import hmac
import re
import secrets
import string
import zlib
from dataclasses import dataclass, field

TOKEN_PREFIX = "tsz_"  # noqa: S105 -- the public part
TOKEN_ID_LENGTH = 10
_SECRET_LENGTH = 32
_CHECKSUM_LENGTH = 6
_ALPHABET = string.digits + string.ascii_uppercase + string.ascii_lowercase
_TOKEN = re.compile(
    rf"{TOKEN_PREFIX}([0-9A-Za-z]{{{TOKEN_ID_LENGTH}}})[0-9A-Za-z]{{{_SECRET_LENGTH + _CHECKSUM_LENGTH}}}"
)
_SESSION_BYTES = 32
_OWNER_PREFIX = "owner."
"""With a dot, which no secret of a user's session has."""
_SETUP_ALPHABET = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
"""Without letters and digits that look the same."""
_SETUP_GROUPS, _SETUP_GROUP_LENGTH = 4, 5


@dataclass(frozen=True, kw_only=True)
class TokenText:
    """A new token: `id` is public and finds its row, `text` is the whole of it."""

    id: str
    text: str = field(repr=False)


def new_token() -> TokenText:
    token_id = _random_text(TOKEN_ID_LENGTH, _ALPHABET)
    body = f"{TOKEN_PREFIX}{token_id}{_random_text(_SECRET_LENGTH, _ALPHABET)}"
    return TokenText(id=token_id, text=body + _checksum(body))


def token_id_of(text: str) -> str | None:
    """The id in a token; None if the text is no whole token."""
    match = _TOKEN.fullmatch(text)
    if match is None:
        return None
    body, checksum = text[:-_CHECKSUM_LENGTH], text[-_CHECKSUM_LENGTH:]
    return match[1] if is_same(checksum, _checksum(body)) else None


def public_part(text: str) -> str:
    """What may be shown of a text that names a token, and may be a whole one by mistake."""
    return text[: len(TOKEN_PREFIX) + TOKEN_ID_LENGTH] if text.startswith(TOKEN_PREFIX) else text


def new_session_secret() -> str:
    return secrets.token_urlsafe(_SESSION_BYTES)


def new_owner_secret() -> str:
    """The secret of a session that a link started."""
    return f"{_OWNER_PREFIX}{new_session_secret()}"


def is_owner_secret(text: str) -> bool:
    """Whether a secret has the form of one of a session that a link started."""
    return text.startswith(_OWNER_PREFIX)


def new_setup_code() -> str:
    """A code that can be typed: four groups of letters and digits."""
    groups = (_random_text(_SETUP_GROUP_LENGTH, _SETUP_ALPHABET) for _ in range(_SETUP_GROUPS))
    return "-".join(groups)


def normalise_setup_code(text: str) -> str:
    """A code as it was typed: upper or lower case, with or without dashes and spaces."""
    letters = re.sub(r"[\s-]", "", text).upper()
    starts = range(0, len(letters), _SETUP_GROUP_LENGTH)
    return "-".join(letters[start : start + _SETUP_GROUP_LENGTH] for start in starts)


def hash_of(secret: str) -> str:
    """What is stored in place of a random secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).hexdigest()


def is_same(one: str, other: str) -> bool:
    """Whether two texts are equal, in a time that says nothing about where they differ."""
    return hmac.compare_digest(
        one.encode("utf-8", "surrogatepass"), other.encode("utf-8", "surrogatepass")
    )


def _random_text(length: int, alphabet: str) -> str:
    return "".join(secrets.choice(alphabet) for _ in range(length))


def _checksum(body: str) -> str:
    """CRC-32 in base 62."""
    number = zlib.crc32(body.encode("ascii"))
    digits = []
    for _ in range(_CHECKSUM_LENGTH):
        number, digit = divmod(number, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
