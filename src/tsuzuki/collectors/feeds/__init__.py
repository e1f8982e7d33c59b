"""Feeds: each article screened once, summarised once and posted once, also across crashes."""

from typing import TYPE_CHECKING, Any

from tsuzuki.collectors.collector import (
    CheckContext,
    Collector,
    CollectorContext,
    Handler,
    ServiceContext,
)

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tsuzuki.collectors.feeds.service import FeedsService
    from tsuzuki.config import JobKind
    from tsuzuki.engine.run_context import RunContext
    from tsuzuki.model.check import Check
    from tsuzuki.store.schema.migrate import Component

LIBRARIES = frozenset(
    {"charset_normalizer", "feedparser", "grapheme", "httpx2", "mastodon", "pypdf", "trafilatura"}
)
"""What the extra `feeds` installs."""


def _kind() -> "JobKind":
    from tsuzuki.collectors.feeds.options import FeedsOptions, FeedsSection
    from tsuzuki.config import JobKind
    from tsuzuki.model.job_question import JOB_NAME, JobQuestion

    text = "Address of the feed, with http:// or https://"
    return JobKind(
        name="feeds",
        options_model=FeedsOptions,
        section_model=FeedsSection,
        questions=(JobQuestion(key=("feeds", JOB_NAME, "url"), text=text),),
        usual_schedule="every 15m",
    )


def _component() -> "Component":
    from tsuzuki.collectors.feeds.tables import COMPONENT

    return COMPONENT


def _handler(context: CollectorContext) -> Handler:
    def handle(run: "RunContext") -> dict[str, Any]:
        from tsuzuki.model.errors import extra_missing

        try:
            from tsuzuki.collectors.feeds.collect import collect
        except ModuleNotFoundError as missing:
            if missing.name not in LIBRARIES:
                raise
            raise extra_missing(
                f"feeds are to be followed, but the library {missing.name} is not installed",
                extra="feeds",
            ) from None
        return collect(context, run)

    return handle


def _service(context: ServiceContext) -> "FeedsService":
    from tsuzuki.collectors.feeds.service import FeedsService

    return FeedsService.of(context)


def _checks(context: CheckContext) -> "Iterable[Check]":
    from tsuzuki.collectors.feeds.checks import checks

    return checks(context)


FEEDS = Collector(
    name="feeds",
    summary="Follow feeds; screen, summarise and post what is new, each article once.",
    kind=_kind,
    component=_component,
    handler=_handler,
    service=_service,
    checks=_checks,
    faces={"cli": "tsuzuki.cli.feeds:feeds"},
)
