"""The lines of an error on a terminal: harmless, without secrets, and none longer than a reader can use. `hide` masks
the secrets."""

from collections.abc import Callable, Iterator

from tsuzuki.model.errors import Place
from tsuzuki.model.visible_text import neutralise

LINE_MAX = 600
"""Characters of a line of a message."""

EXCERPT_MAX = 160
"""Characters of the line of a file that is shown."""

LEAD_MAX = 60
"""Of those, the ones before the column that is pointed at."""


def safe_lines(text: str, hide: Callable[[str], str]) -> list[str]:
    return [neutralise(cut_line(line)) for line in hide(text).split("\n")]


def cut_line(line: str) -> str:
    """The line itself, or what its start and its end say and how much is missing between."""
    if len(line) <= LINE_MAX:
        return line
    head, tail = line[: LINE_MAX * 3 // 4], line[-LINE_MAX // 4 :]
    return f"{head} … {len(line) - len(head) - len(tail)} characters … {tail}"


def place_lines(place: Place, hide: Callable[[str], str]) -> Iterator[str]:
    """Where, and the line of the file with a mark under the column."""
    yield f"  --> {neutralise(hide(str(place)))}"
    if place.line is None or place.text is None:
        return
    text = place.text.rstrip("\r\n")
    shown = hide(text)
    column = place.column if shown == text else None
    excerpt, before = _excerpt(shown, (column or 1) - 1)
    yield f"{place.line:>6} | {_untabbed(excerpt)}"
    if column is not None:
        yield f"{'':>6} | {_blanks_like(before)}^"


def _excerpt(text: str, offset: int) -> tuple[str, str]:
    """The part of a line around an offset, and what of it is before the offset."""
    if len(text) <= EXCERPT_MAX:
        return text, text[:offset]
    start = max(0, min(offset - LEAD_MAX, len(text) - EXCERPT_MAX))
    end = start + EXCERPT_MAX
    lead = "…" if start else ""
    return f"{lead}{text[start:end]}{'…' if end < len(text) else ''}", lead + text[start:offset]


def _untabbed(text: str) -> str:
    return neutralise(text.replace("\t", "    "))


def _blanks_like(text: str) -> str:
    """As many blanks as the text takes on a terminal, where some characters take two."""
    from rich.cells import cell_len  # noqa: PLC0415 - only a failure with an excerpt pays for it

    return " " * cell_len(_untabbed(text))
