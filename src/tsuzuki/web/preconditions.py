"""`ETag` and `If-Match`: a change names the version that it was made against."""

import re

from tsuzuki.web.problems import RequestError

_TAG = re.compile(r'\s*"([0-9]{1,18})"\s*')


def etag(version: int) -> str:
    return f'"{version}"'


def required_version(if_match: str | None, current: int | None) -> int | None:
    """The version that `If-Match` names; None for `*`. Raises 428 without the header."""
    if if_match is None:
        raise RequestError(
            "the request does not say which version to change",
            status=428,
            hint="Read the object and send its ETag in If-Match; `*` changes any version.",
            code="if_match_missing",
        )
    return matched_version(if_match, current)


def matched_version(if_match: str | None, current: int | None) -> int | None:
    """The same where the header may be left out. Of several tags the current one counts, if it is among them."""
    if if_match is None or if_match.strip() == "*":
        return None
    versions = [_version(tag) for tag in if_match.split(",")]
    return current if current in versions else versions[0]


def _version(tag: str) -> int:
    found = _TAG.fullmatch(tag)
    if found is None:
        raise RequestError(
            "If-Match does not contain a valid ETag",
            status=400,
            hint='Send the ETag as you received it, including the quotes: If-Match: "3"',
            code="if_match_invalid",
        )
    return int(found[1])
