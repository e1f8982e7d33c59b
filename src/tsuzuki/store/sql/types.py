"""Column types that mean the same on SQLite and PostgreSQL.

`UtcTime` is aware UTC in Python. PostgreSQL stores it as timestamptz; SQLite as ISO-8601 text of fixed width
with `Z`, so that text order is time order and it is readable.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy import BigInteger, DateTime, Dialect, Integer, Text, TypeDecorator
from sqlalchemy.types import TypeEngine

from tsuzuki.model import jsontext
from tsuzuki.model.errors import UsageError
from tsuzuki.model.run_limits import result_text
from tsuzuki.model.storable_text import storable
from tsuzuki.store.sql.dialect import is_sqlite
from tsuzuki.store.sql.stored_values import from_json, from_text, in_utc, to_text

BigId = BigInteger().with_variant(Integer(), "sqlite")
"""SQLite: only INTEGER becomes the rowid. PostgreSQL: eight bytes."""


class UtcTime(TypeDecorator[datetime]):
    impl = DateTime(timezone=True)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if is_sqlite(dialect):
            return dialect.type_descriptor(Text())
        return dialect.type_descriptor(DateTime(timezone=True))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None:
            return None
        if is_sqlite(dialect):
            return to_text(value)
        if value.tzinfo is None:
            raise ValueError("a time without a zone cannot be stored")
        return value

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        return from_text if is_sqlite(dialect) else in_utc


# `result_processor` and not `process_result_value`, which is a second call for every value that is read.


class JsonText(TypeDecorator[Any]):
    """A JSON value stored as its canonical text: the same bytes, limits and order on both databases."""

    impl = Text
    cache_ok = True
    # None is SQL NULL here; none of our columns needs a JSON null.

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else jsontext.encode(value)

    def result_processor(self, dialect: Dialect, coltype: object) -> Callable[[Any], Any]:
        return from_json


class ResultText(JsonText):
    """The result of a run, as `JsonText`: too large a one is refused, and text in it that no database can store is
    replaced by U+FFFD."""

    cache_ok = True

    def process_bind_param(self, value: Any, dialect: Dialect) -> str | None:
        return None if value is None else result_text(value)


class KeyText(TypeDecorator[str]):
    """Text that is compared, and so must be stored unchanged: what a database cannot store (NUL, lone
    surrogates) is refused, because replaced it might collide with another key."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        if value is None:
            return None
        if "\x00" in value or any("\ud800" <= letter <= "\udfff" for letter in value):
            raise UsageError(
                f"{value!r} cannot be a key",
                hint="Remove NUL characters and unpaired surrogates.",
                code="not_text",
            )
        return value


class PlainText(TypeDecorator[str]):
    """Text from outside: what PostgreSQL cannot store (NUL, lone surrogates) is replaced by U+FFFD."""

    impl = Text
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else storable(value)
