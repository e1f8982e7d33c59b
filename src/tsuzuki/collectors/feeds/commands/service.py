"""The service of feeds, typed for the commands that call it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tsuzuki.collectors.feeds.service import FeedsService
    from tsuzuki.wiring.application import Application


def feeds_service(application: "Application") -> "FeedsService":
    service: FeedsService = application.service("feeds")
    return service
