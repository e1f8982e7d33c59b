"""Classify failures of git by its error output."""

from tsuzuki.collectors.commits.git.program import GitOutput
from tsuzuki.outward.errors import (
    RateLimited,
    SourceFailed,
    SourceRefused,
    SourceUnavailable,
)

RATE_LIMIT_SECONDS = 60.0

_MEANINGS: tuple[tuple[str, type[SourceFailed], str, str], ...] = (
    (
        "dubious ownership",
        SourceRefused,
        "the repository belongs to another user, so git does not trust it (dubious ownership)",
        "If you trust it: git config --global --add safe.directory <path>",
    ),
    (
        "not a git repository",
        SourceRefused,
        "this is not a git repository",
        "Check the path.",
    ),
    ("could not read username", SourceRefused, "the server asks for a name and password", ""),
    ("authentication failed", SourceRefused, "the server refused the name and password", ""),
    ("permission denied", SourceRefused, "access is denied", ""),
    ("returned error: 401", SourceRefused, "the server refused the name and password", ""),
    ("returned error: 403", SourceRefused, "the server denies access", ""),
    ("returned error: 404", SourceRefused, "there is no such repository on the server", ""),
    ("returned error: 429", RateLimited, "the server asks for a pause", ""),
    ("repository not found", SourceRefused, "there is no such repository on the server", ""),
    (
        "does not appear to be a git repository",
        SourceRefused,
        "there is no repository at this URL",
        "",
    ),
    ("not allowed", SourceRefused, "this protocol is not allowed", "Use https, ssh or a path."),
)
_PASSING = (
    "could not resolve",
    "connection refused",
    "connection reset",
    "connection timed out",
    "operation timed out",
    "timed out",
    "early eof",
    "unexpected disconnect",
    "hung up",
    "rpc failed",
    "returned error: 5",
    "failed to connect",
    "couldn't connect",
    "empty reply",
    "cannot lock ref",
)


def refusal(answer: GitOutput) -> SourceFailed:
    """What a failed git means for the collection."""
    said = answer.stderr
    lower = said.lower()
    for sign, kind, words, hint in _MEANINGS:
        if sign in lower:
            return kind(
                words,
                hint=hint or None,
                retry_after_seconds=RATE_LIMIT_SECONDS if kind is RateLimited else None,
            )
    if any(sign in lower for sign in _PASSING):
        return SourceUnavailable(f"git could not reach the repository: {said}")
    if answer.code < 0:
        return SourceUnavailable(f"git was ended by signal {-answer.code}")
    return SourceRefused(
        f"git cannot read the repository: {said or f'exit code {answer.code}'}",
        hint="Check it with: git fsck",
        code="git_failed",
    )
