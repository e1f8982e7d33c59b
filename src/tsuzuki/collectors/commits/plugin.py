"""The record of the commits collector."""

from tsuzuki.wiring.collector import Collector

COLLECTOR = Collector(
    name="commits",
    summary="Continue the collection of every project and branch, and see what it brought.",
    kind="tsuzuki.collectors.commits.options:KIND",
    component="tsuzuki.collectors.commits.tables:COMPONENT",
    handler="tsuzuki.collectors.commits.collect:collect",
    service="tsuzuki.collectors.commits.service:CommitsService",
    checks="tsuzuki.collectors.commits.checks:checks",
    commands={"commits": "tsuzuki.cli.commits:commits"},
)
