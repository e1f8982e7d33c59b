"""Markdown of the reference: pages, tables and cells."""

import re
from collections.abc import Iterable, Sequence

NOTE = "<!-- Made from the code by `make reference`; edit the code, not this page. -->"


def page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", NOTE, *(part for part in parts if part)]) + "\n"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(head), ["---"] * len(head), *([cell(text) for text in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def cell(text: str) -> str:
    """On one line, without ending the cell; what stands in angle brackets is no HTML."""
    pieces = re.split(r"(`[^`]*`)", " ".join(text.split()).replace("|", "\\|"))
    return "".join(
        piece if piece.startswith("`") else piece.replace("<", "&lt;") for piece in pieces
    )


def code(text: object) -> str:
    return f"`{text}`" if str(text) else ""
