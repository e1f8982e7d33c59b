"""Advisory locks: one transaction at a time for a key that is no row."""

from sqlalchemy import BigInteger, Connection, Text, bindparam, func, literal_column, select

from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.prepared import execute

_LOCK_NUMBER = select(func.pg_advisory_xact_lock(bindparam("key", type_=BigInteger())))
_LOCK_TEXT = select(
    func.pg_advisory_xact_lock(
        func.hashtextextended(bindparam("key", type_=Text()), literal_column("0"))
    )
)


def lock_until_commit(connection: Connection, key: int | str) -> None:
    """Take an advisory lock until this transaction ends, waiting for it if need be. SQLite has one
    writer at a time anyway."""
    if not is_sqlite(connection.dialect):
        execute(connection, _LOCK_NUMBER if isinstance(key, int) else _LOCK_TEXT, {"key": key})
