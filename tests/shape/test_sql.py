"""One way to send SQL: prepared statements, and beside them a named few.

Whatever is not listed here goes through `store.sql.prepared`.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

SOURCE = Path(__file__).parents[2] / "src" / "tsuzuki"

FILTERS = {
    "collectors/books/queries/books.py: count",
    "collectors/books/queries/books.py: find",
    "collectors/books/queries/outbox.py: find",
    "collectors/commits/queries/commit_groups.py: commit_groups",
    "collectors/commits/queries/commit_groups.py: exported",
    "collectors/commits/queries/reports.py: ids_beginning",
    "collectors/commits/queries/statistics.py: author_counts",
    "collectors/commits/queries/statistics.py: groups",
    "collectors/feeds/queries/item_lists.py: count",
    "collectors/feeds/queries/item_lists.py: find",
    "store/audit.py: count",
    "store/audit.py: find",
    "store/events.py: count",
    "store/events.py: find",
    "store/runs/queue.py: _found",
    "store/runs/run_paths.py: _candidates",
    "store/runs/run_search.py: _counted",
    "store/runs/run_search.py: _end_of_look",
    "store/runs/run_search.py: _walks",
    "store/runs/runs.py: count",
    "store/runs/runs.py: find",
    "store/runs/runs.py: page_of",
}
"""Functions that assemble a statement from a filter, and send it by `Connection.execute`."""

DEFINING = {
    "store/schema/takeover.py: _Existing",
    "store/schema/takeover.py: _continue_numbers",
}
"""Functions that change tables, once in the life of a database."""

DRIVER = {
    "store/sql/caller_connections.py",
    "collectors/codeindex/index_file.py",
    "store/backup.py",
    "store/restore.py",
    "store/reader/connection.py",
    "store/sql/autocommit.py",
    "store/sql/connection_pool.py",
    "store/sql/database.py",
    "store/sql/postgresql.py",
    "store/sql/read_limit.py",
    "store/sql/sqlite.py",
    "store/sql/write_hold.py",
    "store/wakeups/listeners.py",
}
"""Modules that use the driver's own connection: PRAGMA, BEGIN, VACUUM, LISTEN, autocommit mode."""

DRIVER_SQL = {
    "store/schema/sql_scripts.py",
    "store/sql/caller_connections.py",
    "store/sql/prepared.py",
}
"""Modules that hand SQL to the driver through SQLAlchemy's connection, or to a cursor of it."""

WRITTEN_SQL = {
    "collectors/books/tables.py",
    "collectors/commits/queries/pages.py",
    "collectors/commits/queries/statistics.py",
    "collectors/commits/tables.py",
    "store/inspection.py",
    "store/runs/changes.py",
    "store/schema/takeover.py",
    "store/schema/tables.py",
}
"""Modules that write SQL themselves by `text()`: conditions of tables, and what SQLAlchemy has no words for."""

OWN_FILES = "collectors/codeindex/queries/"
"""Where the statements over SQLite files that are not the engine's database are."""

NO_DATABASE = {"engine/coordination/redis.py"}
"""Modules whose `execute` sends no SQL."""


def functions_with(word: str) -> Iterator[tuple[str, str, ast.AST]]:
    """Each top-level statement of each module that has the word: the module, the function's or class's name, its
    tree."""
    for path in sorted(SOURCE.rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        if "versions" in path.parts or word not in text:
            continue
        for node in ast.parse(text).body:
            yield str(path.relative_to(SOURCE)), getattr(node, "name", ""), node


def places_of(attribute: str) -> set[tuple[str, str]]:
    """Where `….attribute` stands: module and function."""
    return {
        (module, function)
        for module, function, tree in functions_with(attribute)
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and node.attr == attribute
    }


def modules_with(attribute: str) -> set[str]:
    return {module for module, _ in places_of(attribute)}


def test_only_named_functions_send_statements_that_are_not_prepared() -> None:
    found = {
        f"{module}: {function}"
        for module, function in places_of("execute")
        if module not in DRIVER | DRIVER_SQL | NO_DATABASE and not module.startswith(OWN_FILES)
    }
    assert found == FILTERS | DEFINING


def test_only_named_modules_reach_the_driver() -> None:
    assert modules_with("exec_driver_sql") <= DRIVER_SQL
    assert modules_with("driver_connection") | modules_with("dbapi_connection") <= DRIVER


def test_only_named_modules_write_sql_as_text() -> None:
    found = {
        module
        for module, _, tree in functions_with("text(")
        for node in ast.walk(tree)
        if isinstance(node, ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id == "text"
    }
    assert found <= WRITTEN_SQL
