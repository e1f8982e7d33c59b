"""The services of our collectors, typed for the commands that call them."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tsuzuki.collectors.books.service import Books
    from tsuzuki.collectors.commits.service import CommitsService
    from tsuzuki.collectors.feeds.service import FeedsService
    from tsuzuki.wiring.application import Application


def books_service(application: "Application") -> "Books":
    service: Books = application.service("books")
    return service


def commits_service(application: "Application") -> "CommitsService":
    service: CommitsService = application.service("commits")
    return service


def feeds_service(application: "Application") -> "FeedsService":
    service: FeedsService = application.service("feeds")
    return service
