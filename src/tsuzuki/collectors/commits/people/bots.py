"""Which authors are bots: a rule for those that are known, with additions and exceptions of one's own."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache

KNOWN_NAMES = (
    "allcontributors",
    "codecov-commenter",
    "dependabot",
    "dependabot-preview",
    "depfu",
    "github-actions",
    "gitlab-bot",
    "gitlab-ci",
    "google-cla",
    "greenkeeper",
    "greenkeeperio-bot",
    "imgbot",
    "jenkins",
    "mergify",
    "pre-commit-ci",
    "pyup-bot",
    "release-please",
    "renovate",
    "renovate-bot",
    "renovatebot",
    "scala-steward",
    "semantic-release-bot",
    "snyk-bot",
    "weblate",
    "whitesource-bolt",
)
"""Compared without case, as a name or as what stands before the @ of an address."""

_NAMES = frozenset(KNOWN_NAMES)
# `ann[bot]`; and the addresses that GitHub, and GitLab for access tokens and service accounts, give to bots.
_NAME = re.compile(r".*\[bot\]", re.DOTALL)
_ADDRESS = re.compile(
    r"""
      (?:\d+\+)?[^@]+\[bot\]@.*
    | (?:project|group)_?\d+_bot\w*@.*
    | service_account_[^@]+@.*
    | bot@(?:renovateapp|dependabot)\.com | support@dependabot\.com
    | (?:\d+\+)?(?:github-actions|dependabot|renovate)@.*
    """,
    re.VERBOSE | re.DOTALL,
)
# The username of a bot of GitLab stands as the name where an access token has pushed.
_USERNAME = re.compile(r"(?:project|group)_\d+_bot\w*")


@dataclass(frozen=True, kw_only=True)
class BotRule:
    """Patterns with `*` and `?`, compared without case with the name and with the address."""

    include: Sequence[str] = ()
    exclude: Sequence[str] = ()

    def is_excluded(self, name: str, email: str) -> bool:
        return _matches(self.exclude, name, email)

    def is_included(self, name: str, email: str) -> bool:
        return _matches(self.include, name, email)


def is_known_bot(name: str, email: str) -> bool:
    """Whether the default rule calls this author a bot."""
    name, email = name.strip().lower(), email.strip().lower()
    return bool(
        name in _NAMES
        or email.partition("@")[0] in _NAMES
        or _NAME.fullmatch(name)
        or _USERNAME.fullmatch(name)
        or _ADDRESS.fullmatch(email)
    )


def _matches(patterns: Iterable[str], name: str, email: str) -> bool:
    return any(
        pattern.fullmatch(text) for pattern in map(wildcard, patterns) for text in (name, email)
    )


@lru_cache(maxsize=1024)
def wildcard(pattern: str) -> re.Pattern[str]:
    """A pattern in which `*` is any text and `?` any character; everything else is itself."""
    parts = (".*" if c == "*" else "." if c == "?" else re.escape(c) for c in pattern)
    return re.compile("".join(parts), re.IGNORECASE | re.DOTALL)
