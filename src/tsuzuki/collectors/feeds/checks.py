"""Checks of feeds: whether the accounts and models that enabled jobs use let us in. Nothing is posted or paid."""

from collections.abc import Iterator
from contextlib import closing

from tsuzuki.collectors.feeds.channels.factory import open_channel, settings_of
from tsuzuki.collectors.feeds.model.factory import build_model
from tsuzuki.collectors.feeds.options import (
    DEFAULT,
    FeedsSection,
    ModelSettings,
    Provider,
)
from tsuzuki.model.check import Check, checked, fault_of
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.wiring.collector import CheckContext


def checks(context: CheckContext) -> Iterator[Check]:
    """None without a job of this kind."""
    feeds = [feed for job in context.jobs for feed in job.options["feeds"].values()]
    if not feeds:
        return
    try:
        section = context.section(FeedsSection)
    except ConfigurationError as problem:
        yield fault_of("feeds", problem)
        return
    for account in sorted({feed["account"] for feed in feeds}):
        yield _checked_account(context, section, account)
    for model in sorted({feed["model"] for feed in feeds}):
        yield _checked_model(context, section, model)


def _checked_account(context: CheckContext, section: FeedsSection, account: str) -> Check:
    def look() -> str:
        settings = settings_of(section, account)
        channel = open_channel(
            settings, account=account, clock=context.database.clock, workspace=context.workspace
        )
        with closing(channel):
            return channel.check_access()

    return checked(f"feeds: account {account}", look)


def _checked_model(context: CheckContext, section: FeedsSection, name: str) -> Check:
    def look() -> str:
        settings = section.models.get(name)
        if settings is None and name == DEFAULT:
            settings = ModelSettings(provider=Provider.EXTRACTIVE)
        if settings is None:
            raise ConfigurationError(
                f"model {name!r} is missing in the section `feeds`",
                hint="Add it under `models:`.",
                code="no_model",
            )
        with closing(build_model(settings, name=name, clock=context.database.clock)) as model:
            return model.check_access()

    return checked(f"feeds: model {name}", look)
