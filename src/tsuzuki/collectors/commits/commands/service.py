"""The service of commits, typed for the commands that call it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tsuzuki.collectors.commits.service import CommitsService
    from tsuzuki.wiring.application import Application


def commits_service(application: "Application") -> "CommitsService":
    service: CommitsService = application.service("commits")
    return service
