"""The record of the commits collector."""

from tsuzuki.wiring.collector import Collector

COLLECTOR = Collector(
    name="commits",
    summary="Collect commits from git and GitLab, and analyze them.",
    kind="tsuzuki.collectors.commits.options:KIND",
    component="tsuzuki.collectors.commits.tables:COMPONENT",
    handler="tsuzuki.collectors.commits.collect:collect",
    service="tsuzuki.collectors.commits.service:CommitsService",
    checks="tsuzuki.collectors.commits.checks:checks",
    verify="tsuzuki.collectors.commits.verify:verify",
    own_jobs=("commits-by-hand",),
    audited=("commits",),
    commands={"commits": "tsuzuki.collectors.commits.commands.commits:commits"},
    routes=(
        "tsuzuki.collectors.commits.api.commits:router",
        "tsuzuki.collectors.commits.api.reports:router",
    ),
    pages="tsuzuki.collectors.commits.pages:PAGES",
    stand_ins="tsuzuki.collectors.commits.sandbox.stand_ins:STAND_INS",
    demo="tsuzuki.collectors.commits.demo:DEMO",
    bench="bench.commits.measure",
)
