"""A large, deterministic history: written with `git fast-import`, packed as on a server."""

import random
import subprocess
from collections.abc import Iterator
from pathlib import Path

FILES = 400
AUTHORS = 60
START = 1_262_304_000
MERGE_EVERY = 25


def make(folder: Path, commits: int, *, seed: int = 7) -> None:
    """Create a bare repository with `commits` commits on `main`, some of them merges."""
    subprocess.run(["git", "init", "-q", "--bare", "-b", "main", str(folder)], check=True)
    with subprocess.Popen(
        ["git", "-C", str(folder), "fast-import", "--quiet", "--done"], stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        for piece in _stream(commits, random.Random(seed)):
            process.stdin.write(piece)
        process.stdin.write(b"done\n")
        process.stdin.close()
        assert process.wait() == 0
    subprocess.run(["git", "-C", str(folder), "gc", "--quiet"], check=True)


def append(folder: Path, commits: int) -> None:
    """Add some commits on top."""
    with subprocess.Popen(
        ["git", "-C", str(folder), "fast-import", "--quiet", "--done"], stdin=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        for number in range(commits):
            parent = b"from refs/heads/main^0\n" if number == 0 else b""
            text = _lines(random.Random(number), 40)
            process.stdin.write(
                b"commit refs/heads/main\n"
                + _signature(number % AUTHORS, 1_800_000_000 + number)
                + _data(b"more\n")
                + parent
                + f"M 644 inline more/{number % 9}.txt\n".encode()
                + _data(text)
            )
        process.stdin.write(b"done\n")
        process.stdin.close()
        assert process.wait() == 0


def _stream(commits: int, chance: random.Random) -> Iterator[bytes]:
    contents = [_lines(chance, chance.randrange(40, 160)) for _ in range(FILES)]
    names = [f"src/part{n % 20}/module{n % 7}/file{n}.py" for n in range(FILES)]
    at, side = START, 0
    for number in range(commits):
        mark = number  # of the commit before
        at += chance.randrange(1, 9000)
        is_side = number % MERGE_EVERY == MERGE_EVERY - 2 and mark > 10
        is_merge = number % MERGE_EVERY == MERGE_EVERY - 1 and side
        parent = f"from :{mark - 5}\n" if is_side else (f"from :{mark}\n" if mark else "")
        if is_merge:
            parent = f"from :{mark - 1}\nmerge :{side}\n"
        branch = "side" if is_side else "main"
        side = mark + 1 if is_side else side
        head = f"commit refs/heads/{branch}\nmark :{mark + 1}\n".encode()
        changes = b"".join(_change(chance, contents, names) for _ in range(chance.randrange(1, 5)))
        yield (
            head
            + _signature(chance.randrange(AUTHORS), at)
            + _data(f"Change {number}\n\nWhy it was changed.\n".encode())
            + parent.encode()
            + changes
        )


def _change(chance: random.Random, contents: list[bytes], names: list[str]) -> bytes:
    number = chance.randrange(FILES)
    rows = contents[number].splitlines(keepends=True)
    place = chance.randrange(len(rows) + 1)
    if chance.random() < 0.3 and len(rows) > 30:
        del rows[place : place + chance.randrange(1, 8)]
    rows[place:place] = _lines(chance, chance.randrange(1, 12)).splitlines(keepends=True)
    contents[number] = b"".join(rows[:220])
    return f"M 644 inline {names[number]}\n".encode() + _data(contents[number])


def _lines(chance: random.Random, count: int) -> bytes:
    return b"".join(f"    value_{chance.randrange(9999)} = {n}\n".encode() for n in range(count))


def _signature(author: int, at: int) -> bytes:
    who = f"Author {author} <author{author}@example.org> {at} +0000\n".encode()
    return b"author " + who + b"committer " + who


def _data(content: bytes) -> bytes:
    return f"data {len(content)}\n".encode() + content + b"\n"
