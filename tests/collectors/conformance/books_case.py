"""Books, from a stand-in of Google Books; with a mail server where secrets are looked for."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from tsuzuki.collectors.books.options import BooksOptions, BooksSection
from tsuzuki.collectors.books.plugin import COLLECTOR
from tsuzuki.collectors.books.sandbox.google_books import (
    GoogleBooks,
    error_fault,
    old_limit_error,
    volumes,
)
from tsuzuki.collectors.books.sandbox.smtp import MailServer
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind
from tsuzuki.sandbox.server import StandIn

from .case import Case

KEY = "k3y-of-the-conforming"
SENDER = "sender@conforming.example"
READER = "reader@conforming.example"
PASSWORD = "pa55-of-a-proxy"
TOKEN = "glpat-of-a-stranger"


class BooksCase(Case):
    collector = COLLECTOR
    pages = 4
    options = BooksOptions(queries=["python"], max_per_run=400).model_dump(mode="json")
    volatile = frozenset(
        {
            "collect_cursor.last_updated_at",
            "tsuzuki_books_searches.held_by_run",
            "tsuzuki_books_quota_days.calls",  # a killed page is paid for
            "tsuzuki_books.first_seen_at",
            "tsuzuki_books.last_seen_at",
            "tsuzuki_book_finds.found_at",
            "tsuzuki_book_finds.found_by_run",
        }
    )
    secrets = (KEY, SENDER, READER, PASSWORD, TOKEN)

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        super().__init__(folder, monkeypatch)
        self._server = StandIn(GoogleBooks(catalogue=volumes(150)))
        self._server.start()
        self._mail_server: MailServer | None = None
        self._mail: dict[str, Any] = {}

    def section(self) -> BaseModel:
        return BooksSection.model_validate(
            {
                "base_url": f"{self._server.url}/books/v1",
                "api_key": KEY,
                "daily_limit": 10_000,
                "mail": self._mail,
            }
        )

    def use_every_secret(self) -> None:
        self._mail_server = MailServer()
        self._mail_server.__enter__()
        self._mail = {
            "host": self._mail_server.host,
            "port": self._mail_server.port,
            "encryption": "none",
            "from": f"Sender <{SENDER}>",
            "to": READER,
        }

    def fail_with_secrets(self) -> None:
        words = f"key={KEY} {KEY} {SENDER} <{READER}> http://user:{PASSWORD}@host/ {TOKEN}"
        self._server.faults.add(StandInFault(status=503, body=words))
        self._server.faults.add(error_fault(old_limit_error("forbidden", words), times=None))

    def hang(self) -> None:
        self._server.faults.add(StandInFault(kind=StandInFaultKind.HANG))

    def is_hanging(self) -> bool:
        return self._server.faults.held > 0

    def release(self) -> None:
        self._server.faults.release()

    def close(self) -> None:
        self._server.stop()
        if self._mail_server is not None:
            self._mail_server.__exit__(None, None, None)
