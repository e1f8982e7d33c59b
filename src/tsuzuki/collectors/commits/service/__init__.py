"""The use-cases of commits, for every face: projects, targets and results; bulk runs."""

from dataclasses import dataclass

from tsuzuki.collectors.collector import ServiceContext
from tsuzuki.collectors.commits.service.bulk_runs import BulkRuns
from tsuzuki.collectors.commits.service.commits import Commits


@dataclass(frozen=True, kw_only=True)
class CommitsService:
    """What is collected, and the collecting of it."""

    commits: Commits
    bulk_runs: BulkRuns

    @classmethod
    def of(cls, context: ServiceContext) -> "CommitsService":
        return cls(commits=Commits(context), bulk_runs=BulkRuns(context))
