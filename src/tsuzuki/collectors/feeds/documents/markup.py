"""Plain text out of the markup that feeds carry: tags away, entities resolved, blank space in one form."""

import html
import re

_INVISIBLE = re.compile(
    r"<(script|style|template|noscript)\b.*?(?:</\1\s*>|\Z)|<!--.*?(?:-->|\Z)",
    re.IGNORECASE | re.DOTALL,
)
_BLOCK = re.compile(
    r"</?(?:address|article|blockquote|br|dd|div|dt|h[1-6]|hr|li|ol|p|pre|section|table|td|th|tr|ul)\b[^<>]*>",
    re.IGNORECASE,
)
_TAG = re.compile(r"</?[a-zA-Z][^<>]*>|<![^<>]*>|<\?[^<>]*>")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")


def plain_text(text: str, *, is_markup: bool) -> str:
    """The text on one line. A block of markup is set off by a space."""
    if is_markup and "<" in text:
        text = _INVISIBLE.sub(" ", text)
        text = _TAG.sub("", _BLOCK.sub(" ", text))
    if is_markup and "&" in text:
        text = html.unescape(text)
    return " ".join(_CONTROL.sub("", text).split())


def shortened(text: str, *, characters_max: int) -> str:
    """The text, or as much of it as fits, ended by … at a word if there is one near."""
    if len(text) <= characters_max:
        return text
    cut = text[: characters_max - 1]
    words = cut.rpartition(" ")[0]
    return f"{words if len(words) > characters_max * 2 // 3 else cut}…"
