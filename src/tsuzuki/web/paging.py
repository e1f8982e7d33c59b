"""Pages of lists: opaque, signed keyset cursors, and counts that stop counting in time.

A cursor is the position after which a page continues, bound to the path and to the filter it was made for, and
signed with a key of the database: another path, another filter or another position is refused. Every process on
the same database takes the cursors of the others. Nothing is ever skipped by OFFSET, so rows that are added meanwhile
move none.
"""

import base64
import hashlib
import hmac
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Generic, NoReturn, TypeVar

from fastapi import Query
from pydantic import BaseModel, ConfigDict, Field

from tsuzuki.model import jsontext
from tsuzuki.web.problems import RequestError

LIMIT_MAX = 200
LIMIT_DEFAULT = 50
SIGNATURE_BYTES = 16
CURSOR_LENGTH_MAX = 1000

Item = TypeVar("Item")
Row = TypeVar("Row")


class Count(BaseModel):
    """How many there are in all; not `exact`: at least that many."""

    model_config = ConfigDict(extra="forbid")

    value: int
    exact: bool


class Page(BaseModel, Generic[Item]):
    """One page of a list. `next_cursor` asks for the next one, with the same filters; null at the end. With
    `stopped_early` the page has fewer items than asked for, maybe none, and there may be more."""

    model_config = ConfigDict(extra="forbid")

    items: list[Item]
    next_cursor: str | None
    filters: dict[str, Any] = Field(description="The filter as it was parsed.")
    count: Count | None = Field(None, description="Present only with `count=true`.")
    stopped_early: bool = Field(
        False,
        description="True if the search stopped after the maximum number of rows for one request. "
        "`next_cursor` continues from there; a narrower filter, such as a job or a time "
        "range, finds more at once.",
    )


class PageRequest(BaseModel):
    """Which page is asked for. A list adds its filters as further fields."""

    limit: int = Field(LIMIT_DEFAULT, ge=1, le=LIMIT_MAX, description="Maximum number of items.")
    cursor: (
        Annotated[
            str,
            Field(
                min_length=1,
                max_length=CURSOR_LENGTH_MAX,
                json_schema_extra={"pattern": "^[A-Za-z0-9_-]+$"},
            ),
        ]
        | None
    ) = Field(None, description="`next_cursor` of the previous page.")
    count: bool = Field(False, description="Count matching items, up to 10,000.")

    def filters(self) -> dict[str, Any]:
        """The filters that were given, as JSON."""
        dumped = self.model_dump(mode="json", exclude=set(PageRequest.model_fields))
        return {name: value for name, value in dumped.items() if value not in (None, [])}


FIRST_PAGE = PageRequest.model_validate({})
COUNT_MAX = 10_000
"""How far is counted. On PostgreSQL this reads every row whose page has changed lately, not the index alone."""

PageQuery = Annotated[PageRequest, Query()]


@dataclass(frozen=True)
class SearchedRows(Generic[Row]):
    """Rows of a search that may have been ended early: then `continue_at` is the position to go on from. `count` is
    of the whole list, where the search has counted it as well."""

    rows: Sequence[Row]
    continue_at: int | str | None = None
    count: Count | None = None


def count_of(found: int) -> Count:
    """The count of a scan that stops one after `COUNT_MAX`."""
    return Count(value=min(found, COUNT_MAX), exact=found <= COUNT_MAX)


class SignedCursors:
    """Signs and reads the cursors of one list: a path with its filter."""

    def __init__(self, key: bytes, path: str, filters: Mapping[str, Any]) -> None:
        bound = jsontext.encode([path, dict(filters)]).encode("utf-8")
        self._key = hashlib.sha256(key + bound).digest()

    def write(self, position: int | str) -> str:
        payload = jsontext.encode(position).encode("utf-8")
        return base64.urlsafe_b64encode(self._sign(payload) + payload).decode("ascii").rstrip("=")

    def read(self, cursor: str) -> Any:
        """The position in a cursor. Raises `RequestError` if it was not made for this list."""
        try:
            raw = base64.urlsafe_b64decode(cursor.encode("ascii") + b"=" * (-len(cursor) % 4))
        except ValueError:
            _refuse()
        signature, payload = raw[:SIGNATURE_BYTES], raw[SIGNATURE_BYTES:]
        if not payload or not hmac.compare_digest(signature, self._sign(payload)):
            _refuse()
        return jsontext.decode(payload.decode("utf-8"))

    def _sign(self, payload: bytes) -> bytes:
        return hmac.digest(self._key, payload, "sha256")[:SIGNATURE_BYTES]


def _refuse() -> NoReturn:
    raise RequestError(
        "the cursor does not belong to this list",
        status=400,
        hint="Use the `next_cursor` of the previous page with the same filters, or leave it out "
        "to start from the beginning.",
        code="cursor_invalid",
    )


def page_of(
    found: SearchedRows[Row],
    *,
    limit: int,
    cursors: SignedCursors,
    position: Callable[[Row], int | str],
    item: Callable[[Row], Item],
    filters: Mapping[str, Any],
) -> Page[Item]:
    """A page of rows, of which one more than `limit` was read if there are more."""
    shown = found.rows[:limit]
    has_more = len(found.rows) > limit
    next_at = position(shown[-1]) if has_more else found.continue_at
    return Page(
        items=[item(row) for row in shown],
        next_cursor=None if next_at is None else cursors.write(next_at),
        filters=dict(filters),
        count=found.count,
        stopped_early=next_at is not None and not has_more,
    )
