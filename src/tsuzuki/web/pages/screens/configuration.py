"""What the file, the environment and flags say, and the webhooks in it. Both are changed where they are written."""

from typing import Any

from tsuzuki.model.access import Right
from tsuzuki.model.job import JobSource
from tsuzuki.model.webhook_signatures import WebhookKind
from tsuzuki.services.webhooks import WebhookView
from tsuzuki.web.answers import Model, Moment
from tsuzuki.web.pages.context import Page, PageContext
from tsuzuki.web.pages.language import message
from tsuzuki.web.pages.route import Screen
from tsuzuki.web.problems import Problem

screen = Screen()

PROOFS = {
    WebhookKind.STANDARD: message("Signature of ID, timestamp and body (Standard Webhooks)"),
    WebhookKind.GITHUB: message("Body signature in X-Hub-Signature-256"),
    WebhookKind.GITLAB: message("Secret in X-Gitlab-Token"),
    WebhookKind.HEADER: message("Secret in header %(header)s"),
}


class EntryOut(Model):
    """`origin` is a place in the file, a variable, a flag, or `default`."""

    key: str
    value: Any
    origin: str


class ConfigurationPage(Model):
    """`jobs` counts those in the file now."""

    file: str | None
    jobs: int
    entries: list[EntryOut]


class WebhookOut(Model):
    """`variables` hold its secrets. `problem`: why deliveries are refused now."""

    name: str
    kind: WebhookKind
    event_type: str
    header: str
    variables: list[str]
    place: str | None
    problem: Problem | None
    last_event_id: int | None
    last_event_at: Moment | None
    jobs: list[str]


class WebhooksView(Model):
    webhooks: list[WebhookOut]

    def proof(self, webhook: WebhookOut) -> str:
        return PROOFS[webhook.kind]


@screen.page(
    "/settings/configuration", right=Right.SETTINGS_READ, template="screens/configuration.html"
)
def configuration_page(context: Page) -> ConfigurationPage:
    configuration = context.application.configuration
    return ConfigurationPage(
        file=None if configuration.file is None else str(configuration.file),
        entries=[
            _entry(context, *found) for found in configuration.entries() if found[0] != "jobs"
        ],
        jobs=sum(view.source is JobSource.FILE for view in context.application.jobs.find()),
    )


def _entry(context: PageContext, key: str, value: object, origin: str) -> EntryOut:
    is_plain = value is None or isinstance(value, bool | int | float | list | dict)
    shown = value if is_plain else str(value)
    name = key.rpartition(".")[2]
    return EntryOut(key=key, value=context.mask({name: shown})[name], origin=origin)


@screen.page("/settings/webhooks", right=Right.SETTINGS_READ, template="screens/webhooks.html")
def webhooks_page(context: Page) -> WebhooksView:
    found = context.application.webhooks.find()
    return WebhooksView(webhooks=[_webhook(context, view) for view in found])


def _webhook(context: PageContext, view: WebhookView) -> WebhookOut:
    webhook, event = view.webhook, view.last_event
    return WebhookOut(
        name=webhook.name,
        kind=webhook.kind,
        event_type=webhook.event,
        header=webhook.header,
        variables=list(webhook.variables),
        place=None if webhook.place is None else str(webhook.place),
        problem=None if view.problem is None else context.problem(view.problem),
        last_event_id=None if event is None else event.id,
        last_event_at=None if event is None else event.created_at,
        jobs=view.listeners,
    )
