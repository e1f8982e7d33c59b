"""Attempts to sign in, counted by name and by address in a window of time.

An attempt is counted before the password is checked, so that many at once cannot pass a limit together.
"""

from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Any

from sqlalchemy import Connection, Float, bindparam, case, delete, or_, select, update
from sqlalchemy.engine import Dialect

from tsuzuki.model.clock import CLOCK_TOLERANCE_SECONDS
from tsuzuki.store.schema.access_tables import sign_in_attempts
from tsuzuki.store.sql.clock import db_now
from tsuzuki.store.sql.dialect import insert_into
from tsuzuki.store.sql.prepared import execute, parameters_for


@dataclass(frozen=True, kw_only=True)
class SignInAttempts:
    """How many there were in the window, this one included, and when it ends."""

    count: int
    window_ends_at: datetime


_KEY = sign_in_attempts.c.key_hash == bindparam("wanted", type_=sign_in_attempts.c.key_hash.type)
_WINDOW = bindparam("window_seconds", type_=Float())
_LATEST_END = bindparam("latest_end_seconds", type_=Float())
_IS_OVER = or_(
    sign_in_attempts.c.window_ends_at <= db_now(),
    # Written before the clock was put back: it would last for as long as that.
    sign_in_attempts.c.window_ends_at > db_now(_LATEST_END),
)


@lru_cache
def _count(dialect: Dialect) -> Any:
    statement = insert_into(dialect, sign_in_attempts).values(
        **parameters_for(sign_in_attempts, "key_hash"), attempts=1, window_ends_at=db_now(_WINDOW)
    )
    stored = sign_in_attempts.c
    return statement.on_conflict_do_update(
        index_elements=[stored.key_hash],
        set_={
            "attempts": case((_IS_OVER, 1), else_=stored.attempts + 1),
            "window_ends_at": case(
                (_IS_OVER, statement.excluded.window_ends_at), else_=stored.window_ends_at
            ),
        },
    ).returning(stored.attempts, stored.window_ends_at)


def count(connection: Connection, key_hash: str, *, window_seconds: float) -> SignInAttempts:
    """Count one more attempt; the first one after a window opens a new one."""
    parameters = {
        "key_hash": key_hash,
        "window_seconds": window_seconds,
        "latest_end_seconds": window_seconds + CLOCK_TOLERANCE_SECONDS,
    }
    row = execute(connection, _count(connection.dialect), parameters).one()
    return SignInAttempts(count=row[0], window_ends_at=row[1])


_FORGET = delete(sign_in_attempts).where(_KEY)
_TAKE_BACK = (
    update(sign_in_attempts)
    .where(_KEY, sign_in_attempts.c.attempts > 1)
    .values(attempts=sign_in_attempts.c.attempts - 1)
)
_DELETE_ONLY = delete(sign_in_attempts).where(_KEY, sign_in_attempts.c.attempts == 1)
# Locked rows are left to the next one: waiting for them could be a deadlock.
_OVER = (
    select(sign_in_attempts.c.key_hash)
    .where(sign_in_attempts.c.window_ends_at <= db_now())
    .with_for_update(skip_locked=True)
)
_DELETE_OVER = delete(sign_in_attempts).where(sign_in_attempts.c.key_hash.in_(_OVER))


def forget(connection: Connection, key_hash: str) -> None:
    """Forget all attempts, after one that succeeded."""
    execute(connection, _FORGET, {"wanted": key_hash})


def take_back(connection: Connection, key_hash: str) -> None:
    """Count one attempt less, because it succeeded."""
    if not execute(connection, _TAKE_BACK, {"wanted": key_hash}).rowcount:
        execute(connection, _DELETE_ONLY, {"wanted": key_hash})


def delete_over(connection: Connection) -> None:
    """Delete what was counted in windows that have ended."""
    execute(connection, _DELETE_OVER)
