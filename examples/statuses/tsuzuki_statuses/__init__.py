"""A collector of Mastodon statuses. Every command loads this record; its parts import what they need when called."""

from tsuzuki.collectors.collector import Collector


def kind():
    from tsuzuki.config import JobKind
    from tsuzuki_statuses.options import Options, Section

    return JobKind(name="statuses", options_model=Options, section_model=Section)


def component():
    from tsuzuki_statuses.tables import COMPONENT

    return COMPONENT


def handler(context):
    def handle(run):
        from tsuzuki_statuses.collect import collect

        return collect(context, run)

    return handle


def service(context):
    from tsuzuki_statuses.service import Statuses

    return Statuses(context)


COLLECTOR = Collector(
    name="statuses",
    summary="Keep the public statuses of Mastodon accounts.",
    kind=kind,
    component=component,
    handler=handler,
    service=service,
    faces={"cli": "tsuzuki_statuses.commands:statuses"},
)
