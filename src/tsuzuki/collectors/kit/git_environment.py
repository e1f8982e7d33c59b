"""The environment of a git that a collector starts, and of the ssh that git starts.

Only what finds and reaches a repository is passed on: keys, passwords and tokens of this process are not. What
leads git to another repository or lets it ask a person is left out too.
"""

from collections.abc import Mapping

_NAMES = frozenset(
    "HOME PATH USER LOGNAME SHELL LANG LANGUAGE TZ TMPDIR CURL_CA_BUNDLE GIT_SSL_CAINFO GNUPGHOME".split()
)
_PREFIXES = ("LC_", "XDG_", "SSH_", "SSL_CERT_", "KRB5", "LD_LIBRARY_", "NSS_")
_SUFFIX = "_PROXY"


def git_environment(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if _is_passed_on(name)}


def _is_passed_on(name: str) -> bool:
    if name.startswith("SSH_ASKPASS"):
        return False
    return name in _NAMES or name.startswith(_PREFIXES) or name.upper().endswith(_SUFFIX)
