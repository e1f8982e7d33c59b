"""What lies between a process and the database: a request that fails, hangs, or whose answer is lost.

A process hands over its turn before and after each transaction, never inside one: SQLite has one writer, and what a
process had read is as old after such a turn as it would be anywhere. Whatever is to befall it happens at one of
these points.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from simulation.fibers import GreenletExit
from tsuzuki.model.errors import TsuzukiError, Unreachable
from tsuzuki.store.sql.database import Connection, Database
from tsuzuki.store.sql.driver_errors import translate_errors

if TYPE_CHECKING:
    from simulation.party import Party


class Point(StrEnum):
    """Where a process can be struck."""

    BEFORE_READ = "before a read"
    AFTER_READ = "after a read"
    BEFORE_WRITE = "before a write"
    BEFORE_COMMIT = "before a commit"
    AFTER_COMMIT = "after a commit"


LATER_SECONDS = (0.0, 0.0, 0.1, 2.0)
"""What was under way while a line was cut arrives so long after it was mended, or never."""


class LawBroken(BaseException):
    """Something happened that never should. Not an `Exception`: nothing in the engine survives it."""


class PartyDatabase(Database):
    """The shared store as one process or person reaches it."""

    def __init__(self, party: "Party") -> None:
        world = party.world
        super().__init__(world.store.engine, clock=party.clock)
        self.party = party
        self._world = world
        self._store = world.store

    @contextmanager
    def read(self) -> Iterator[Connection]:
        self._reach(Point.BEFORE_READ)
        with translate_errors(self.engine.url), self._store.look() as connection:
            yield connection
        self._pass(Point.AFTER_READ)

    @contextmanager
    def write(self) -> Iterator[Connection]:
        self._reach(Point.BEFORE_WRITE)
        raw = self._store.raw
        changes = raw.total_changes
        try:
            with translate_errors(self.engine.url), self._store.change() as connection:
                self._world.notices_said.clear()
                yield connection
                self._strike(Point.BEFORE_COMMIT)
                if self.party.weather.fails(self._world.chance):
                    raise Unreachable("the connection broke before the commit")
        except (TsuzukiError, GreenletExit, LawBroken):
            raise
        except Exception as problem:
            said = getattr(problem, "orig", problem)
            raise LawBroken(f"the database was asked for what it refuses: {said}") from problem
        kinds = self._world.laws.after_commit(self.party, raw.total_changes - changes)
        self._world.deliver_notices()
        self._answer(kinds)

    @contextmanager
    def statement(self) -> Iterator[Any]:
        """A transaction like any other: only the way there is shorter in real life."""
        with self.write() as connection:
            yield connection

    def now(self, connection: Connection) -> Any:
        """One clock for all, as a database server has it."""
        return self._world.database_clock.now()

    def _reach(self, point: Point) -> None:
        self._pass(point)
        if self.party.weather.fails(self._world.chance):
            self._world.reached["a request failed"] += 1
            raise Unreachable("the request did not get through")

    def _answer(self, kinds: list[str]) -> None:
        """The commit is done; whether anybody hears of it is another matter."""
        self._strike(Point.AFTER_COMMIT)
        lost = self.party.weather.loses(self._world.chance)
        self._linger()
        if lost or (self.party.is_cut and not self._comes_late()):
            self._world.reached["a reply was lost"] += 1
            for kind in kinds:
                self._world.reached[f"lost reply: {kind}"] += 1
            self._world.tell(f"the reply is lost: {', '.join(kinds) or 'no move'}")
            raise Unreachable("the connection broke after the commit")

    def _pass(self, point: Point) -> None:
        self._strike(point)
        self._linger()
        if self.party.is_cut:
            self._world.reached["the database was out of reach"] += 1
            if not self._comes_late():
                raise Unreachable("the database is out of reach")

    def _linger(self) -> None:
        self._world.turns.rest(self.party.weather.delay_seconds(self._world.chance))
        self._require_life()

    def _comes_late(self) -> bool:
        """A cut line may say so at once, or say nothing until it is mended; and then what was under way
        may still arrive, each thing in its own time."""
        if not self.party.is_cut_silently:
            return False
        while self.party.is_cut:
            self._world.turns.rest(min(0.5, self.party.cut_until - self._world.turns.now))
            self._require_life()
        if self._world.chance.random() < 0.5:
            return False
        self._world.reached["something arrived late"] += 1
        self._world.turns.rest(self._world.chance.choice(LATER_SECONDS))
        self._require_life()
        return True

    def _strike(self, point: Point) -> None:
        self._require_life()
        strike: Callable[[], None] | None = self.party.struck_at(point)
        if strike is not None:
            strike()
            self._require_life()

    def _require_life(self) -> None:
        if self.party.is_dead:
            raise GreenletExit
