"""What goes wrong during a soak: drawn from a seed, one after the other, some of them at the same time."""

import random
import signal
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count

from soak.nodes import ROLES, Node
from soak.outside import Outside
from support.databases import PostgresServer
from support.proxy import Proxy
from support.redis_server import RedisServer
from tsuzuki.collectors.feeds.sandbox.gemini.cases import GeminiCase
from tsuzuki.collectors.feeds.sandbox.mastodon import WriteCase
from tsuzuki.sandbox.faults import StandInFault, StandInFaultKind

Act = Callable[[], None]

GAP_SECONDS = (0.2, 1.6)
LENGTH_SECONDS = (0.3, 5.0)
POST_CASES = (
    WriteCase.GATEWAY_TIMEOUT,
    WriteCase.STORED_LATER,
    WriteCase.REPLY_LOST,
    WriteCase.REQUEST_LOST,
    WriteCase.SERVER_ERROR,
)
MODEL_CASES = (
    GeminiCase.OVERLOADED,
    GeminiCase.SERVER_ERROR,
    GeminiCase.REPLY_LOST,
    GeminiCase.REQUEST_LOST,
)
HTTP_FAULTS = (
    StandInFaultKind.CUT,
    StandInFaultKind.RESET,
    StandInFaultKind.HTML,
    StandInFaultKind.ANSWER,
)
WEIGHTS = {
    "kill": 6,
    "kill node": 3,
    "pause": 5,
    "pause node": 2,
    "cut database": 5,
    "cut node": 3,
    "cut redis": 2,
    "reset database": 3,
    "redis crash": 1,
    "redis flush": 1,
    "database crash": 1,
    "service cut": 5,
    "service reset": 3,
    "service error": 4,
    "post case": 5,
    "model case": 3,
}


@dataclass(frozen=True, kw_only=True)
class Hazard:
    """One fault. `target` has at most one at a time; `end` is called when its time is over."""

    kind: str
    target: str
    start: Act
    end: Act


def nothing() -> None:
    """For what needs no end."""


@dataclass(kw_only=True)
class Hazards:
    """Draws them. The same seed draws the same ones in the same order."""

    chance: random.Random
    nodes: list[Node]
    outside: Outside
    server: PostgresServer
    redis: RedisServer

    def __post_init__(self) -> None:
        self.met: Counter[str] = Counter()
        self._running: list[tuple[float, Hazard]] = []
        self._plan = self._drawn()
        self._next = next(self._plan)

    def step(self, elapsed: float) -> list[str]:
        """End what is over and start what is due. Answers what was done, for the log."""
        told = []
        for at, hazard in [*self._running]:
            if at <= elapsed:
                self._end(at, hazard)
                told.append(f"end of {hazard.kind} {hazard.target}")
        while self._next[0] <= elapsed:
            at, seconds, hazard = self._next
            self._next = next(self._plan)
            if hazard.target in {one.target for _, one in self._running}:
                continue
            hazard.start()
            self.met[hazard.kind] += 1
            self._running.append((elapsed + seconds, hazard))
            told.append(f"{hazard.kind} {hazard.target} for {seconds:.1f} s")
        return told

    def stop(self) -> None:
        for at, hazard in [*self._running]:
            self._end(at, hazard)
        for server in self.outside.servers.values():
            server.faults.clear()
        self.outside.mastodon.post_cases.clear()
        self.outside.gemini.cases.clear()
        self.outside.mastodon.store_pending()

    def _end(self, at: float, hazard: Hazard) -> None:
        self._running.remove((at, hazard))
        hazard.end()

    def _drawn(self) -> Iterator[tuple[float, float, Hazard]]:
        """When, for how long, what."""
        at = 1.0
        makers = self._makers()
        for _ in count():
            at += self.chance.uniform(*GAP_SECONDS)
            (kind,) = self.chance.choices([*WEIGHTS], [*WEIGHTS.values()])
            seconds = self.chance.uniform(*LENGTH_SECONDS)
            yield at, seconds, makers[kind](kind)

    def _makers(self) -> dict[str, Callable[[str], Hazard]]:
        return {
            "kill": self._kill,
            "kill node": self._kill,
            "pause": self._pause,
            "pause node": self._pause,
            "cut database": lambda kind: self._cut(kind, self._a_node().database),
            "cut node": self._cut_node,
            "cut redis": lambda kind: self._cut(kind, self._a_node().redis),
            "reset database": self._reset_database,
            "redis crash": lambda kind: Hazard(
                kind=kind, target="redis", start=self.redis.kill, end=self.redis.start
            ),
            "redis flush": lambda kind: Hazard(
                kind=kind, target="redis", start=self.redis.flush, end=nothing
            ),
            "database crash": lambda kind: Hazard(
                kind=kind, target="server", start=self._crash_database, end=nothing
            ),
            "service cut": lambda kind: self._cut(kind, self._a_service()[1]),
            "service reset": self._reset_service,
            "service error": self._fail_service,
            "post case": self._post_case,
            "model case": self._model_case,
        }

    def _a_node(self) -> Node:
        return self.chance.choice(self.nodes)

    def _a_service(self) -> tuple[str, Proxy]:
        return self.chance.choice([*self.outside.proxies.items()])

    def _processes(self, kind: str) -> tuple[Node, tuple[str, ...]]:
        """One of a node, or all of it."""
        node, role = self._a_node(), self.chance.choice(ROLES)
        return node, ROLES if kind.endswith("node") else (role,)

    def _kill(self, kind: str) -> Hazard:
        node, roles = self._processes(kind)
        return Hazard(
            kind=kind,
            target=f"processes {node.name}",
            start=lambda: node.kill(*roles),
            end=lambda: node.start(*roles),
        )

    def _pause(self, kind: str) -> Hazard:
        node, roles = self._processes(kind)
        return Hazard(
            kind=kind,
            target=f"processes {node.name}",
            start=lambda: node.send(signal.SIGSTOP, *roles),
            end=lambda: node.send(signal.SIGCONT, *roles),
        )

    def _cut(self, kind: str, *proxies: Proxy) -> Hazard:
        """Packets are dropped, or connections refused."""
        is_silent = self.chance.random() < 0.6
        return Hazard(
            kind=kind,
            target=f"port {proxies[0].port}",
            start=lambda: [one.fall_silent() if is_silent else one.refuse() for one in proxies],
            end=lambda: [one.mend() for one in proxies],
        )

    def _cut_node(self, kind: str) -> Hazard:
        node = self._a_node()
        return self._cut(kind, node.database, node.redis)

    def _reset_database(self, kind: str) -> Hazard:
        node = self._a_node()
        return Hazard(
            kind=kind, target=f"resets {node.name}", start=node.database.reset, end=nothing
        )

    def _reset_service(self, kind: str) -> Hazard:
        name, proxy = self._a_service()
        return Hazard(kind=kind, target=f"resets {name}", start=proxy.reset, end=nothing)

    def _fail_service(self, kind: str) -> Hazard:
        name = self.chance.choice([*self.outside.servers])
        how, times = self.chance.choice(HTTP_FAULTS), self.chance.randrange(1, 4)
        # A cut after the server has acted is a lost answer, and HTML is what a broken gateway sends.
        fault = StandInFault(kind=how, status=503, times=times)
        server = self.outside.servers[name]
        return Hazard(
            kind=kind, target=f"errors {name}", start=lambda: server.faults.add(fault), end=nothing
        )

    def _post_case(self, kind: str) -> Hazard:
        case = self.chance.choice(POST_CASES)
        return Hazard(
            kind=kind,
            target="posts",
            start=lambda: self.outside.mastodon.post_cases.add(case),
            end=nothing,
        )

    def _model_case(self, kind: str) -> Hazard:
        case = self.chance.choice(MODEL_CASES)
        return Hazard(
            kind=kind,
            target="models",
            start=lambda: self.outside.gemini.cases.add(case),
            end=nothing,
        )

    def _crash_database(self) -> None:
        self.server.halt(how="immediate")
        self.server.start_again()
