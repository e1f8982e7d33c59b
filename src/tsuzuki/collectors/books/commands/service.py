"""The service of books, typed for the commands that call it."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tsuzuki.collectors.books.service import Books
    from tsuzuki.wiring.application import Application


def books_service(application: "Application") -> "Books":
    service: Books = application.service("books")
    return service
