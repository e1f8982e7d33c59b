"""The page of moves: each move of a run, who may make it, and its SQL in both dialects."""

import re
from functools import partial
from typing import Any

from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect

from tools.reference.markdown import code, page, table
from tsuzuki.model.states import MOVES, MOVES_AT_ONCE
from tsuzuki.store.runs import moves

DIALECTS: dict[str, Dialect] = {
    "SQLite": sqlite.dialect(paramstyle="named"),
    "PostgreSQL": postgresql.dialect(paramstyle="named"),  # type: ignore[no-untyped-call]  # SQLAlchemy does not type it
}
MOVERS: dict[str, str] = {
    "assign": "leader",
    "assign_and_start": "leader, for the worker of its own process",
    "orphan": "leader",
    "fail_lost": "leader",
    "fail_orphaned": "leader",
    "skip": "leader",
    "replace": "leader",
    "start": "worker",
    "finish": "worker",
    "hand_back": "worker",
    "cancel": "operator",
}
"""Every function that moves runs, and who calls it. A test in `tests/docs` compares it with the module."""

_PARAGRAPHS = (
    "A run changes its state by one of these moves and in no other way. Each is one UPDATE over a batch of runs, whose"
    " WHERE names the state and the version that the mover has seen, and its right to move. A run that does not match"
    " was moved by another process: it is left alone, and nothing is tried again.",
    "The triggers in `schema.sqlite.sql` and `schema.postgresql.sql` refuse every other move, also one written by hand,"
    " and write the history.",
)
_BREAKS = re.compile(
    r" (?=(?:FROM|WHERE|SET|RETURNING|ORDER BY|LIMIT|UNION ALL|JOIN)\b|AND (?:EXISTS|NOT|\())"
)
_VALUE_TYPE = re.compile(r"(:\w+)::\w+")
"""Type cast that the PostgreSQL driver adds to a parameter."""


def moves_page() -> str:
    return page(
        "Moves of a run",
        *_PARAGRAPHS,
        "## Who may move",
        table(("from", "to", "who"), _rows()),
        "## SQL",
        *(part for name in MOVERS for part in _section(name)),
    )


def _rows() -> list[tuple[str, str, str]]:
    rows = [(source, target, actors, "") for (source, target), actors in MOVES.items()]
    at_once = [
        (source, target, actors, ", two moves in one statement")
        for (source, target), actors in MOVES_AT_ONCE.items()
    ]
    return [
        (code(source), code(target), ", ".join(sorted(actors)) + more)
        for source, target, actors, more in (*rows, *at_once)
    ]


def _section(name: str) -> list[str]:
    words = " ".join(str(getattr(moves, name).__doc__).split())
    parts = [f"### `{name}`", f"By: {MOVERS[name]}.", words.replace("->", "→")]
    for title, dialect in DIALECTS.items():
        parts.append(f"{title}:\n\n```sql\n{_sql(name, dialect)}\n```")
    return parts


def _sql(name: str, dialect: Dialect) -> str:
    build: Any = getattr(moves, f"_{name}")
    if name == "cancel":
        build = partial(build, is_led=False)
    columns = {
        "finish": moves.FINISH_COLUMNS,
        "assign": moves.ASSIGN_COLUMNS,
    }.get(name, moves.REF_COLUMNS)
    compiled = build(dialect, tuple(columns)).compile(dialect=dialect)
    text = _VALUE_TYPE.sub(r"\1", " ".join(str(compiled).split()))
    for parameter, value in sorted(compiled.params.items(), reverse=True):
        if value is not None:  # a constant, not what the caller gives
            text = re.sub(
                rf":{parameter}\b", f"'{value}'" if isinstance(value, str) else str(value), text
            )
    return _BREAKS.sub("\n", text)
