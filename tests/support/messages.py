"""The messages of the page: those that templates and code use, and those that the catalogues translate."""

from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

from babel.messages.extract import extract_python
from babel.messages.pofile import read_po
from jinja2.ext import babel_extract

import tsuzuki.web
from tsuzuki.web.pages.extension import folders
from tsuzuki.web.pages.language import catalogue_files

WEB = Path(tsuzuki.web.__file__).parent
COLLECTORS = WEB.parent / "collectors"
OPTIONS = {
    "trim_blocks": "true",
    "lstrip_blocks": "true",
    "extensions": "jinja2.ext.do",
    "silent": "false",
}


def used_messages() -> dict[str, str]:
    """Each message by its English text (its first form), with the file that uses it."""
    return {text: place for place, text in _used()}


def _used() -> Iterator[tuple[str, str]]:
    for file in sorted(file for folder in folders("templates") for file in folder.rglob("*.html")):
        with file.open("rb") as content:
            found = babel_extract(content, ("_", "gettext", "ngettext"), [], OPTIONS)
            yield from _named(file, found)
    for file in sorted([*(WEB / "pages").rglob("*.py"), *COLLECTORS.glob("*/pages/*.py")]):
        with file.open("rb") as content:
            yield from _named(file, extract_python(content, {"message": None}, [], {}))
    for file in sorted(WEB.parent.rglob("*.py")):
        content = file.read_bytes()
        if b"Sentence(" in content:
            found = extract_python(BytesIO(content), {"Sentence": None}, [], {})
            yield from _named(file, found)


def _named(
    file: Path, found: Iterator[tuple[int, str, object, list[str]]]
) -> Iterator[tuple[str, str]]:
    for _line, _function, texts, _comments in found:
        first = texts[0] if isinstance(texts, tuple) else texts
        if isinstance(first, str):
            yield str(file.relative_to(WEB.parent)), first


def translated(language: str) -> Iterator[tuple[str, str, object]]:
    """Each translation: its file, the English text and what it says."""
    for file in catalogue_files(f"{language}/*.po"):
        with file.open("rb") as content:
            for entry in read_po(content, locale=language):
                if entry.id:
                    first = entry.id[0] if isinstance(entry.id, tuple | list) else entry.id
                    yield file.name, str(first), entry.string
