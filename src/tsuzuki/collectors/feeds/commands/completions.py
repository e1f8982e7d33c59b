"""The words that a shell offers for arguments of `tsuzuki feeds`."""

from tsuzuki.cli.completions import completion, find_jobs
from tsuzuki.cli.invocation import Invocation


def _feeds(invocation: Invocation) -> list[tuple[str, str]]:
    return [
        (name, view.name)
        for view in find_jobs(invocation, "feeds")
        for name in view.spec.options.get("feeds", {})
    ]


feed_names = completion(_feeds)
