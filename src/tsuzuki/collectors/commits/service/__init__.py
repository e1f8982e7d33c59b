"""The use-cases of commits, for every interface: projects and targets, collections, reports.

Each is imported when it is used: a report needs nothing of what asks a source.
"""

from functools import cached_property
from typing import TYPE_CHECKING

from tsuzuki.wiring.collector import ServiceContext

if TYPE_CHECKING:
    from tsuzuki.collectors.commits.service.collections import Collections
    from tsuzuki.collectors.commits.service.commits import Commits
    from tsuzuki.collectors.commits.service.reports import Reports


class CommitsService:
    """What is collected, the collecting of it, and what it brought."""

    def __init__(self, context: ServiceContext) -> None:
        self._context = context

    @cached_property
    def commits(self) -> "Commits":
        from tsuzuki.collectors.commits.service.commits import Commits

        return Commits(self._context)

    @cached_property
    def collections(self) -> "Collections":
        from tsuzuki.collectors.commits.service.collections import Collections

        return Collections(self._context)

    @cached_property
    def reports(self) -> "Reports":
        from tsuzuki.collectors.commits.service.reports import Reports

        return Reports(self._context)
