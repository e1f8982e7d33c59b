"""A tree of source files, and clients of the official SDK on a server about it."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Coroutine, Mapping
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any, TypeVar

from mcp import StdioServerParameters
from mcp.client.client import Client
from mcp_types import CallToolResult

Value = TypeVar("Value")
FOLDER_VARIABLE = "TSUZUKI_CODEINDEX_FOLDER"
FILES = {
    "shop/cart.py": '''"""Carts."""

from shop.sums import total


class Cart:
    """What a customer buys."""

    def add(self, item: str) -> int:
        """Add one item."""
        return total([item])

    def clear(self) -> None:
        """Remove every item."""
''',
    "shop/sums.py": "def total(items):\n    return len(items)\n\n\ndef tax(items):\n    return total(items)\n",
    "shop/web.js": "function total(items) { return items.length }\nfunction show() { return total([]) }\n",
    "tests/test_cart.py": "from shop.cart import Cart\n\n\ndef test_add():\n    assert Cart().add('a') == 1\n",
    "docs/notes.md": "# Notes\n\nThe total is 42 in the end.\n",
}


def make_tree(root: Path, files: Mapping[str, str] = FILES) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    subprocess.run(["git", "init", "--quiet"], cwd=root, check=True)
    return root


def server_environ(folder: Path) -> dict[str, str]:
    """Without variables that name another tree."""
    kept = {key: value for key, value in os.environ.items() if key != "CLAUDE_PROJECT_DIR"}
    return {**kept, FOLDER_VARIABLE: str(folder)}


def server_command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tsuzuki", "mcp", *arguments]


class Session:
    """A client on a loop of its own, so that tests need none."""

    def __init__(self, target: Any, mode: Any = "auto") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        self._stop = asyncio.Event()
        self._ready: asyncio.Future[Client] = self._loop.create_future()
        self._ended = asyncio.run_coroutine_threadsafe(self._hold(target, mode), self._loop)
        self.client = self.run(self._opened())

    async def _opened(self) -> Client:
        return await self._ready

    async def _hold(self, target: Any, mode: Any) -> None:
        """A client is entered and left by the same task."""
        try:
            async with AsyncExitStack() as stack:
                self._ready.set_result(await stack.enter_async_context(Client(target, mode=mode)))
                await self._stop.wait()
        except BaseException as problem:
            if not self._ready.done():
                self._ready.set_exception(problem)
            raise

    def run(self, work: Coroutine[Any, Any, Value]) -> Value:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(60)

    def call(
        self, name: str, arguments: Mapping[str, Any] | None = None, **more: Any
    ) -> CallToolResult:
        return self.run(self.client.call_tool(name, dict(arguments or {}), **more))

    def close(self) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._ended.result(30)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(120)
        self._loop.close()


def stdio_session(root: Path, folder: Path, mode: Any = "auto") -> Session:
    program, *arguments = server_command("--root", str(root))
    target = StdioServerParameters(command=program, args=arguments, env=server_environ(folder))
    return Session(target, mode)
