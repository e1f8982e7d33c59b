"""Text of strangers made plain: the right characters, blank space in one form, nothing invisible.

Every function takes time in proportion to its input, hostile input too.
"""

import codecs
import re
import unicodedata

from tsuzuki.collectors.feeds.documents.encoding import codec_of

PAGE_CHARACTERS_MAX = 40_000
"""Of the text of an item: its page and its attachments together."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0e-\x1f\x7f-\x84\x86-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u206f\ufeff"
    "\ufff0-\ufffb\ufffe\uffff\ud800-\udfff\ue000-\uf8ff\U000e0000-\U000e0fff]"
)
"""Controls, marks of direction, tags, private use: a person does not see them, a model does."""

_LINE_ENDS = re.compile("\r\n?|[\x0b\x0c\x85\u2028\u2029]")
_BLANKS = re.compile(r"[^\S\n]+")
_EMPTY_LINES = re.compile(r"\n{3,}")
_META_CHARSET = re.compile(rb"charset\s*=\s*[\"']?\s*([\w.:+-]{1,40})", re.IGNORECASE)
MISFIT_MAX = 0.005
"""The share of characters that may be broken in a page whose charset is still believed."""

_HIDDEN_ELEMENTS = ("script", "style", "template", "noscript", "head")


def normalised(text: str) -> str:
    """The text with single blanks, at most one empty line in a row, and only what is visible."""
    text = _INVISIBLE.sub("", unicodedata.normalize("NFC", _LINE_ENDS.sub("\n", text)))
    lines = (line.strip() for line in _BLANKS.sub(" ", text).split("\n"))
    return _EMPTY_LINES.sub("\n\n", "\n".join(lines)).strip()


def single_line(text: str, *, characters_max: int) -> str:
    """The text on one line."""
    return " ".join(normalised(text[: characters_max * 4]).split())[:characters_max].strip()


def decoded(body: bytes, charset: str | None) -> str:
    """The text of a page. What it and its server say about the charset is believed if it fits."""
    for mark, marked in (
        (codecs.BOM_UTF8, "utf-8"),
        (b"\xff\xfe", "utf-16"),
        (b"\xfe\xff", "utf-16"),
    ):
        if body.startswith(mark):
            return body.decode(marked, errors="replace")
    if b"\x1b$" in body:  # the escapes of ISO-2022-JP, which is ASCII to every other charset
        return body.decode("iso2022_jp", errors="replace")
    meta = _META_CHARSET.search(body[:4096])
    said = [charset, meta[1].decode("ascii", errors="replace") if meta else None]
    for codec in [known for name in said if name and (known := codec_of(name))]:
        text = body.decode("cp1252" if codec == "ascii" else codec, errors="replace")
        if text.count("\ufffd") <= len(text) * MISFIT_MAX:
            return text
    for codec in _guesses(body):
        try:
            return body.decode(codec)
        except UnicodeError:
            continue
    return body.decode("utf-8", errors="replace")


def stripped_markup(markup: str) -> str:
    """The text between the tags, without scripts and styles."""
    lower, parts, position = markup.lower(), [], 0
    while (start := markup.find("<", position)) >= 0:
        parts.append(markup[position:start])
        hidden = _hidden_element(lower, start)
        if lower.startswith("<!--", start):
            end = lower.find("-->", start)
        elif hidden is not None:
            end = lower.find(f"</{hidden}", start)
        else:
            end = start
            parts.append(" ")
        end = lower.find(">", end) if end >= 0 else end
        position = end + 1 if end >= 0 else len(markup)
    parts.append(markup[position:])
    return "".join(parts).replace("&nbsp;", " ").replace("&lt;", "<").replace("&amp;", "&")


def _hidden_element(lower: str, start: int) -> str | None:
    for name in _HIDDEN_ELEMENTS:
        if lower.startswith(name, start + 1) and not lower[start + 1 + len(name) :][:1].isalnum():
            return name
    return None


def _guesses(body: bytes) -> list[str]:
    """Charsets to try if none is named or the named one does not fit."""
    # EUC-JP often passes for Shift_JIS, as rows of half-width katakana.
    is_euc = _half_width(body, "cp932") > _half_width(body, "euc_jp")
    return ["utf-8", *(["euc_jp", "cp932"] if is_euc else ["cp932", "euc_jp"]), "cp1252"]


def _half_width(body: bytes, codec: str) -> int:
    text = body[:20_000].decode(codec, errors="ignore")
    return sum("\uff61" <= character <= "\uff9f" for character in text)
