"""The collector's record, with import strings because every command loads it."""

from tsuzuki.wiring.collector import Collector

COLLECTOR = Collector(
    name="statuses",
    summary="Keep the public statuses of Mastodon accounts.",
    kind="tsuzuki_statuses.options:KIND",
    component="tsuzuki_statuses.tables:COMPONENT",
    handler="tsuzuki_statuses.collect:collect",
    service="tsuzuki_statuses.service:Statuses",
    checks="tsuzuki_statuses.checks:checks",
    verify="tsuzuki_statuses.verify:verify",
    needs=("httpx2",),
    dry_run_arguments={"dry_run": True},
    audited=("statuses",),
    rights="tsuzuki_statuses.rights:RIGHTS",
    commands={"statuses": "tsuzuki_statuses.commands:statuses"},
    cursors="tsuzuki_statuses.commands:cursors",
    routes=("tsuzuki_statuses.api:router",),
    topics="tsuzuki_statuses.stream:TOPICS",
    pages="tsuzuki_statuses.pages:PAGES",
    tools="tsuzuki_statuses.tools:TOOLS",
    stand_ins="tsuzuki_statuses.sandbox:STAND_INS",
    demo="tsuzuki_statuses.demo:DEMO",
    bench="tsuzuki_statuses.bench",
)
