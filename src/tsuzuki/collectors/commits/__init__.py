"""Continues the collection of every project and branch: from the head it knew to the head of today.

a collection:  collect → hosts (threads) → branch → pages       ledger: what was begun and how it went
a source:      source (what can be asked) ← source_git, source_mirror, source_gitlab
what is kept:  tables ← projects, targets, pages, ledger, statistics
"""

from tsuzuki.collectors.collector import Collector, CollectorContext, Handler
from tsuzuki.collectors.commits.options import CommitsOptions, CommitsSection
from tsuzuki.collectors.commits.tables import COMPONENT
from tsuzuki.config import JobKind
from tsuzuki.engine.run_context import RunContext


def _handler(collector_context: CollectorContext) -> Handler:
    def collect_commits(run: RunContext) -> object:
        from tsuzuki.collectors.commits.collect import collect  # noqa: PLC0415 - most never collect

        return collect(collector_context, run)

    return collect_commits


COMMITS = Collector(
    kind=JobKind(name="commits", options_model=CommitsOptions, section_model=CommitsSection),
    component=COMPONENT,
    handler=_handler,
)
