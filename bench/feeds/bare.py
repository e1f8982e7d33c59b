"""Bare loops that make the same calls: httpx2, feedparser, trafilatura, Mastodon.py and sqlite3, nothing else.

python -m bench.feeds.bare items <site> <gemini> <mastodon> <database file>
python -m bench.feeds.bare unchanged <site> <count> <threads>

`items` makes one commit per step of an item: page, verdict, summary, post. Prints seconds and peak memory.
"""

import json
import sqlite3
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import feedparser
import httpx2
import trafilatura
from mastodon import Mastodon

from bench.feeds.figures import processor_seconds, say
from bench.feeds.server import FEED_PATH
from tsuzuki.collectors.feeds.model.prompts import SCREENING_PROMPT, SUMMARY_PROMPT
from tsuzuki.collectors.feeds.sandbox.gemini import KEY
from tsuzuki.collectors.feeds.sandbox.mastodon import TOKEN

TABLES = """
CREATE TABLE items (id INTEGER PRIMARY KEY, url TEXT UNIQUE, title TEXT, published_at TEXT, status INTEGER,
  page TEXT, verdict TEXT, summary TEXT, post TEXT);
CREATE INDEX items_by_status ON items (status, published_at);
"""
SCREENING = {
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "verdict": {"type": "string", "enum": ["worth", "not_worth", "not_ready"]},
    },
    "required": ["reason", "verdict"],
}
SUMMARY = {
    "type": "object",
    "properties": {"summary": {"type": "string"}},
    "required": ["summary"],
}


class Loop:
    """Bare loop that processes one item after another."""

    def __init__(self, site: str, gemini: str, mastodon: str, database: sqlite3.Connection) -> None:
        self._feed = site + FEED_PATH
        self._model = f"{gemini}/v1beta/models/gemini-flash-lite-latest:generateContent"
        self._database = database
        self._client = httpx2.Client()
        self._mastodon = Mastodon(
            api_base_url=mastodon,
            access_token=TOKEN,
            version_check_mode="none",
            ratelimit_method="throw",
        )

    def run(self) -> int:
        entries = feedparser.parse(self._client.get(self._feed).content).entries
        rows = [(one.link, one.title, one.published) for one in entries]
        put = "INSERT INTO items (url, title, published_at, status) VALUES (?, ?, ?, 0)"
        with self._database:
            self._database.executemany(put, rows)
        count = 0
        following = (
            "SELECT id, url, title FROM items WHERE status = 0 ORDER BY published_at LIMIT 1"
        )
        while (item := self._database.execute(following).fetchone()) is not None:
            self._work_on(*item)
            count += 1
        return count

    def _work_on(self, number: int, url: str, title: str) -> None:
        page = trafilatura.extract(self._client.get(url).content) or ""
        self._store(number, page=page)
        article = f"<title>\n{title}\n</title>\n<url>\n{url}\n</url>\n<article>\n{page}\n</article>"
        verdict = self._ask(SCREENING_PROMPT, article, SCREENING)["verdict"]
        self._store(number, verdict=verdict)
        summary = self._ask(SUMMARY_PROMPT, article, SUMMARY)["summary"]
        self._store(number, summary=summary)
        text = f"{title}\n\n{summary[:300]}\n\n{url}"
        post = self._mastodon.status_post(
            text, visibility="unlisted", language="en", idempotency_key=url
        )
        self._store(number, post=str(post.id), status=3)

    def _ask(self, prompt: str, article: str, schema: dict[str, Any]) -> dict[str, Any]:
        question = {
            "systemInstruction": {"parts": [{"text": prompt}]},
            "contents": [{"role": "user", "parts": [{"text": article}]}],
            "generationConfig": {
                "responseMimeType": "application/json",
                "responseJsonSchema": schema,
                "maxOutputTokens": 2048,
            },
        }
        answer = self._client.post(self._model, json=question, headers={"x-goog-api-key": KEY})
        return json.loads(answer.json()["candidates"][0]["content"]["parts"][0]["text"])

    def _store(self, number: int, **values: Any) -> None:
        columns = ", ".join(f"{name} = ?" for name in values)
        with self._database:
            self._database.execute(
                f"UPDATE items SET {columns} WHERE id = ?", (*values.values(), number)
            )


def items(site: str, gemini: str, mastodon: str, file: str) -> None:
    database = sqlite3.connect(file)
    database.execute("PRAGMA journal_mode = WAL")
    database.execute("PRAGMA synchronous = FULL")
    database.executescript(TABLES)
    started, used = time.perf_counter(), processor_seconds()
    count = Loop(site, gemini, mastodon, database).run()
    seconds = time.perf_counter() - started
    say(count=count, seconds=seconds, cpu_seconds=processor_seconds() - used)


def unchanged(site: str, count: str, threads: str) -> None:
    """Every feed once for its validators, then all of them again, as many at a time as there are threads."""
    urls = [f"{site}/feed{number}.xml" for number in range(int(count))]
    with httpx2.Client() as client, ThreadPoolExecutor(int(threads)) as pool:

        def validators(url: str) -> dict[str, str]:
            seen = client.get(url).headers
            return {"If-None-Match": seen["etag"], "If-Modified-Since": seen["last-modified"]}

        headers = list(pool.map(validators, urls))
        started, used = time.perf_counter(), processor_seconds()
        answers = pool.map(lambda url, one: client.get(url, headers=one), urls, headers)
        found = sum(answer.status_code == 304 for answer in answers)
        seconds = time.perf_counter() - started
        say(count=found, seconds=seconds, cpu_seconds=processor_seconds() - used)


def main() -> None:
    match sys.argv[1:]:
        case ["items", *arguments]:
            items(*arguments)
        case ["unchanged", *arguments]:
            unchanged(*arguments)
        case other:
            raise SystemExit(f"no such part: {other}")


if __name__ == "__main__":
    main()
