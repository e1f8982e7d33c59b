"""A movable clock for a whole database: on SQLite through the process, on PostgreSQL by replacing the
function `tsuzuki_now`."""

from datetime import UTC, datetime

from sqlalchemy import text

from tsuzuki.model.clock import ManualClock
from tsuzuki.store.sql.database import Database

NOON = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)


class MovingClock(ManualClock):
    """Moves the database's clock with its own."""

    def __init__(self, start: datetime = NOON) -> None:
        super().__init__(start)
        self._database: Database | None = None

    def drive(self, database: Database) -> None:
        if database.is_sqlite:
            return
        self._database = database
        with database.write() as connection:
            connection.execute(text("CREATE TABLE test_clock (now timestamptz)"))
            connection.execute(text("INSERT INTO test_clock VALUES (:now)"), {"now": self.now()})
            connection.execute(
                text(
                    "CREATE OR REPLACE FUNCTION tsuzuki_now(offset_seconds double precision)"
                    " RETURNS timestamptz LANGUAGE sql STABLE AS"
                    " $$ SELECT now + make_interval(secs => offset_seconds) FROM test_clock $$"
                )
            )

    def advance(self, seconds: float) -> None:
        super().advance(seconds)
        self._tell()

    def step(self, seconds: float) -> None:
        super().step(seconds)
        self._tell()

    def _tell(self) -> None:
        if self._database is not None:
            with self._database.write() as connection:
                connection.execute(text("UPDATE test_clock SET now = :now"), {"now": self.now()})
