"""A bare loop that does the same work: httpx2 and sqlite3, one commit per page, nothing else.

python -m bench.books.bare <base url> <database file>      prints seconds and peak memory
"""

import json
import resource
import sqlite3
import sys
import time

import httpx2

TABLES = """
CREATE TABLE tsuzuki_books (volume_id TEXT PRIMARY KEY, isbn13 TEXT, title TEXT, authors TEXT, publisher TEXT,
  published_date TEXT, description TEXT, language TEXT, print_type TEXT, page_count INTEGER,
  info_link TEXT, first_seen_at TEXT, last_seen_at TEXT);
CREATE TABLE collect_cursor (job_name TEXT PRIMARY KEY, start_index INTEGER, is_exhausted INTEGER);
"""
PUT = (
    "INSERT INTO tsuzuki_books VALUES (?,?,?,?,?,?,?,?,?,?,?,datetime('now'),datetime('now'))"
    " ON CONFLICT (volume_id) DO UPDATE SET title = excluded.title, authors = excluded.authors,"
    " description = excluded.description, last_seen_at = excluded.last_seen_at"
)
MOVE = (
    "INSERT INTO collect_cursor VALUES ('j', ?, ?) ON CONFLICT (job_name) DO UPDATE"
    " SET start_index = excluded.start_index, is_exhausted = excluded.is_exhausted"
)


def row(item: dict) -> tuple:
    info = item["volumeInfo"]
    return (
        item["id"],
        info["industryIdentifiers"][0]["identifier"],
        info["title"],
        json.dumps(info["authors"]),
        info["publisher"],
        info["publishedDate"],
        info["description"],
        info["language"],
        info["printType"],
        info["pageCount"],
        info["infoLink"],
    )


def collect(base_url: str, database: sqlite3.Connection) -> int:
    start, items = 0, [None]
    with httpx2.Client() as client:
        while items:
            parameters = {"q": "python", "startIndex": start, "maxResults": 40, "key": "k"}
            items = client.get(f"{base_url}/volumes", params=parameters).json().get("items", [])
            start += len(items)
            database.execute("BEGIN IMMEDIATE")
            database.executemany(PUT, [row(item) for item in items])
            database.execute(MOVE, (start, int(not items)))
            database.execute("COMMIT")
    return start


def main() -> None:
    base_url, file = sys.argv[1:]
    database = sqlite3.connect(file, isolation_level=None)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.executescript(TABLES)
    started = time.perf_counter()
    found = collect(base_url, database)
    seconds = time.perf_counter() - started
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"items": found, "seconds": seconds, "memory_mb": memory}))


if __name__ == "__main__":
    main()
