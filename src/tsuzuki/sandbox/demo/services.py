"""The stand-ins of the demo as servers. While they run a minute of their own passes every minute: the books allow
new calls, and the news have a new article."""

import threading
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from datetime import datetime
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from tsuzuki.model.clock import Clock, SystemClock
from tsuzuki.sandbox.exchange import Application
from tsuzuki.sandbox.gitlab import gitlab
from tsuzuki.sandbox.google_books import GoogleBooks
from tsuzuki.sandbox.mastodon import mastodon
from tsuzuki.sandbox.server import StandIn
from tsuzuki.sandbox.smtp import MailServer

from .catalogue import demo_catalogue
from .news import make_news, publish

CALLS_PER_MINUTE = 4
MINUTE_SECONDS = 60.0
USUAL_PORTS = {"gitlab": 8421, "books": 8422, "mail": 8423, "feeds": 8424, "mastodon": 8425}


class PortTaken(Exception):
    """A port that must be this one is in use."""

    def __init__(self, service: str, port: int, reason: str) -> None:
        super().__init__(reason)
        self.service, self.port, self.reason = service, port, reason


class DemoServices:
    """Servers on the `ports` of an earlier start, or on the usual ones, or where those are taken on free ones.
    `repositories` are those of the GitLab, and `since` is the moment of the first start."""

    def __init__(
        self,
        repositories: Path,
        *,
        since: datetime,
        ports: Mapping[str, int] | None = None,
        clock: Clock | None = None,
    ) -> None:
        self._wanted = ports
        self._clock = clock or SystemClock()
        self._running = ExitStack()
        self._stopped = threading.Event()
        self._minutes = threading.Thread(
            target=self._pass_minutes, name="demo-minutes", daemon=True
        )
        self.books = GoogleBooks(demo_catalogue(), calls_per_minute=CALLS_PER_MINUTE)
        self.news = make_news(since=since)
        self.mastodon = mastodon(clock=self._clock)
        self._applications: dict[str, Application] = {
            "gitlab": gitlab(repositories, clock=self._clock),
            "books": self.books,
            "feeds": self.news,
            "mastodon": self.mastodon,
        }
        self.ports: dict[str, int] = {}
        self._published = 0

    def __enter__(self) -> Self:
        with ExitStack() as running:
            for name, application in self._applications.items():
                self.ports[name] = self._started(name, partial(_stand_in, application), running)
            self.ports["mail"] = self._started("mail", _mail_server, running)
            self._running = running.pop_all()
        self._minutes.start()
        return self

    def __exit__(
        self,
        _type: type[BaseException] | None,
        _error: BaseException | None,
        _traceback: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._minutes.join()
        self._running.close()

    def tick(self) -> None:
        """A minute has passed."""
        self.books.new_minute()
        publish(self.news, self._published, at=self._clock.now())
        self._published += 1

    def _pass_minutes(self) -> None:
        while not self._clock.wait(self._stopped, MINUTE_SECONDS):
            self.tick()

    def _started(
        self, name: str, make: Callable[[int], StandIn | MailServer], running: ExitStack
    ) -> int:
        """Start a server on the first port that is to be had. Raises `PortTaken` if none is."""
        reason = ""
        for port in self._candidates(name):
            try:
                server = make(port)
                server.start()
            except OSError as problem:
                reason = str(problem.strerror)
                continue
            running.callback(server.stop)
            return server.port
        raise PortTaken(name, port, reason)

    def _candidates(self, name: str) -> tuple[int, ...]:
        return (USUAL_PORTS[name], 0) if self._wanted is None else (self._wanted[name],)


def _stand_in(application: Application, port: int) -> StandIn:
    return StandIn(application, port=port)


def _mail_server(port: int) -> MailServer:
    return MailServer(port=port)
