"""Run the stand-ins of `tsuzuki demo`, and call their every-minute functions."""

import threading
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from types import TracebackType
from typing import TYPE_CHECKING, Self

from tsuzuki.cli.demo.part import DemoServer
from tsuzuki.model.clock import Clock
from tsuzuki.model.errors import Conflict

if TYPE_CHECKING:
    from tsuzuki.sandbox.ports import LocalServer

MINUTE_SECONDS = 60.0


class DemoServices:
    """Servers on the `ports` of an earlier start; those without one are on their usual port, or on a free one if
    that is taken. Entering it raises `Conflict` if a port of an earlier start is in use."""

    def __init__(
        self, demo_servers: Sequence[DemoServer], *, ports: Mapping[str, int], clock: Clock
    ) -> None:
        self._demo_servers = demo_servers
        self._wanted = ports
        self._clock = clock
        self._running = ExitStack()
        self._stopped = threading.Event()
        self._minutes = threading.Thread(
            target=self._pass_minutes, name="demo-minutes", daemon=True
        )
        self.servers: dict[str, LocalServer] = {}

    @property
    def ports(self) -> dict[str, int]:
        return {name: server.port for name, server in self.servers.items()}

    def __enter__(self) -> Self:
        with ExitStack() as running:
            for one in self._demo_servers:
                server = self.servers[one.name] = self._started(one)
                running.callback(server.stop)
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
        """Do what the stand-ins do every minute."""
        for one in self._demo_servers:
            if one.each_minute is not None:
                one.each_minute()

    def _pass_minutes(self) -> None:
        while not self._clock.wait(self._stopped, MINUTE_SECONDS):
            self.tick()

    def _started(self, one: DemoServer) -> "LocalServer":
        from tsuzuki.sandbox.ports import PortTaken, start_on

        wanted = self._wanted.get(one.name)
        try:
            return start_on([one.usual_port, 0] if wanted is None else [wanted], one.make)
        except PortTaken as taken:
            raise Conflict(
                f"port {taken.port} on 127.0.0.1, which this demo uses for {one.name}, is taken: "
                f"{taken.reason}",
                hint="If this demo is running in another terminal, stop it there. Otherwise, choose "
                "another folder: tsuzuki demo FOLDER",
                code="port_in_use",
            ) from None
