"""The record: import strings, because every command loads it."""

from tsuzuki.wiring.collector import Collector

COLLECTOR = Collector(
    name="statuses",
    summary="Keep the public statuses of Mastodon accounts.",
    kind="tsuzuki_statuses.options:KIND",
    component="tsuzuki_statuses.tables:COMPONENT",
    handler="tsuzuki_statuses.collect:collect",
    service="tsuzuki_statuses.service:Statuses",
    commands={"statuses": "tsuzuki_statuses.commands:statuses"},
)
