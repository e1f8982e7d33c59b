"""Databases as other programs see them: the specified tables, made by hand, and rows read and written with SQL."""

import sqlite3
from collections.abc import Sequence
from contextlib import closing
from typing import Any

import psycopg

COMMITS = """
CREATE TABLE projects (
  project_id INTEGER PRIMARY KEY,
  name TEXT NOT NULL
);
CREATE TABLE commits (
  project_id INTEGER REFERENCES projects(project_id),
  branch_name TEXT NOT NULL,
  sha TEXT NOT NULL,
  author_name TEXT NOT NULL,
  author_email TEXT NOT NULL,
  committed_date_utc TEXT NOT NULL,
  additions INTEGER NOT NULL,
  deletions INTEGER NOT NULL,
  UNIQUE (project_id, branch_name, sha)
);
CREATE INDEX commits_by_date ON commits(project_id, branch_name, committed_date_utc);
"""

BULK_COLLECTIONS = """
CREATE TABLE IF NOT EXISTS bulk_collection_runs (
  run_id TEXT PRIMARY KEY,
  started_at_utc TEXT NOT NULL,
  completed_at_utc TEXT,
  status TEXT NOT NULL CHECK(status IN ('running', 'completed', 'cancelled')),
  total_targets INTEGER NOT NULL,
  completed_count INTEGER NOT NULL DEFAULT 0,
  failed_count INTEGER NOT NULL DEFAULT 0,
  success_count INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE IF NOT EXISTS bulk_collection_results (
  run_id TEXT NOT NULL,
  project_id INTEGER NOT NULL,
  branch_name TEXT NOT NULL,
  status TEXT NOT NULL CHECK(status IN ('pending', 'success', 'failed')),
  new_commits_count INTEGER,
  error_message TEXT,
  processed_at_utc TEXT,
  PRIMARY KEY (run_id, project_id, branch_name),
  FOREIGN KEY (run_id) REFERENCES bulk_collection_runs(run_id) ON DELETE CASCADE
);
CREATE INDEX IF NOT EXISTS idx_bulk_results_run_status
  ON bulk_collection_results(run_id, status);
CREATE INDEX IF NOT EXISTS idx_bulk_results_target_status
  ON bulk_collection_results(project_id, branch_name, status);
CREATE INDEX IF NOT EXISTS idx_bulk_runs_status_started
  ON bulk_collection_runs(status, started_at_utc);
"""

ITEMS = """
CREATE TABLE items (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  url TEXT NOT NULL UNIQUE,
  title TEXT NOT NULL,
  published_at TIMESTAMP NOT NULL,
  status INTEGER NOT NULL,
  reason INTEGER,
  retry_count INTEGER NOT NULL,
  created_at TIMESTAMP NOT NULL,
  last_checked_at TIMESTAMP NOT NULL
);
CREATE UNIQUE INDEX idx_items_url ON items(url);
CREATE INDEX idx_items_status_last_checked_at ON items(status, last_checked_at);
CREATE INDEX idx_items_status_published_at ON items(status, published_at);
"""

CURSORS = """
CREATE TABLE collect_cursor (
  job_name TEXT NOT NULL,
  query_set_hash TEXT NOT NULL,
  start_index INTEGER NOT NULL DEFAULT 0,
  is_exhausted INTEGER NOT NULL DEFAULT 0,
  last_updated_at TEXT NOT NULL DEFAULT (datetime('now')),
  PRIMARY KEY (job_name, query_set_hash)
);
"""

_ON_POSTGRESQL = {
    "INTEGER PRIMARY KEY AUTOINCREMENT": "SERIAL PRIMARY KEY",
    "(datetime('now'))": "to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS')",
}


class FormerDatabase:
    """A database that is worked on with plain SQL, as another program does."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.is_sqlite = url.startswith("sqlite")

    def create(self, *tables: str) -> None:
        for statement in "".join(tables).split(";"):
            if statement.strip():
                self.execute(statement)

    def add(self, table: str, *rows: Sequence[Any]) -> None:
        for row in rows:
            marks = ", ".join(["?"] * len(row))
            self.execute(f"INSERT INTO {table} VALUES ({marks})", *row)

    def execute(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        if self.is_sqlite:
            path = self.url.removeprefix("sqlite:///").partition("?")[0]
            with closing(sqlite3.connect(path)) as connection, connection:
                return connection.execute(statement, values).fetchall()
        for before, after in _ON_POSTGRESQL.items():
            statement = statement.replace(before, after)
        with psycopg.connect(self.url) as connection:
            cursor = connection.execute(statement.replace("?", "%s"), values)  # type: ignore[arg-type]
            return cursor.fetchall() if cursor.description else []

    def tables(self) -> set[str]:
        query = (
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            if self.is_sqlite
            else "SELECT tablename FROM pg_tables WHERE schemaname = 'public'"
        )
        return {name for (name,) in self.execute(query)}
