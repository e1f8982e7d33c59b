"""A stand-in for GitLab: real git repositories of a folder through the documented REST paths.

    with StandIn(gitlab(folder)) as server:
        gitlab_client = gitlab.Gitlab(server.url, private_token=TOKEN)

What it knows of: version, user, projects (both kinds of pages, former paths, archived), branches,
commits with counts, single commits, files, comparison, merge base; the token; the headers of pages and of
the rate limit. `demo` makes repositories for a person who has none at hand.
"""

from pathlib import Path

from tsuzuki.model.clock import Clock, SystemClock

from .api import GitLabApi
from .projects import Projects
from .throttle import Throttle

TOKEN = "sandbox-token"  # noqa: S105 -- it opens nothing but the sandbox


def gitlab(
    folder: Path,
    *,
    token: str = TOKEN,
    requests_per_minute: int | None = None,
    clock: Clock | None = None,
) -> GitLabApi:
    """The application that serves the repositories in `folder`; None limits nothing."""
    throttle = Throttle(clock or SystemClock(), requests_per_minute)
    return GitLabApi(Projects(folder), token=token, throttle=throttle)
