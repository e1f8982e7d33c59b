"""Checks of the commits collector: the git program, and access to GitLab."""

import shutil
from collections.abc import Iterator
from contextlib import closing

from tsuzuki.collectors.commits.options import CommitsSection
from tsuzuki.collectors.commits.sources.gitlab_client import GitLabClient, GitLabServer
from tsuzuki.model.check import Check, checked, fault, fault_of, ok
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.wiring.collector import CheckContext


def checks(context: CheckContext) -> Iterator[Check]:
    """None if commits are not collected here."""
    try:
        section = context.section(CommitsSection)
    except ConfigurationError as problem:
        if context.jobs:
            yield fault_of("commits", problem)
        return
    if not (context.jobs or section.gitlab.token):
        return
    program = shutil.which("git")
    yield (
        ok("commits: git", program)
        if program
        else fault("commits: git", "git is not on the PATH", "Install git.")
    )
    if section.gitlab.token:
        yield checked(f"commits: {section.gitlab.url}", lambda: _signed_in(context, section))


def _signed_in(context: CheckContext, section: CommitsSection) -> str:
    token = section.gitlab.token
    server = GitLabServer(
        url=section.gitlab.url,
        token=token.get_secret_value() if token else None,
        timeout_seconds=section.request_timeout,
    )
    client = GitLabClient(server, context.database.clock)
    with closing(client):
        reply = client.get("/user")
    name = reply.body.get("username") if isinstance(reply.body, dict) else None
    return f"the token belongs to {name}" if name else "the token is accepted"
