"""The output guard: nothing that a model or a feed wrote adds a link, a mention, a hashtag or an invisible
character to a post.

What is left of such text is plain words. Only the operator's template and the item's own link may be more.
"""

import re
import unicodedata
from functools import lru_cache

COMBINING_MARKS_MAX = 4
"""More marks on one letter than any script writes are a trick: they count as one character."""

JOINER = "\u200d"
NON_JOINER = "\u200c"
_INVISIBLE = frozenset("\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5")
"""Blank letters and fillers, which are not of a category for such characters."""

_LINK = re.compile(
    r"[a-z0-9+.\-]{0,20}:/{2,}[!-~]*|\b(?:mailto|xmpp|magnet|tel|javascript|data):[!-~]+"
    r"|\bwww\d?\.[!-~]+",
    re.IGNORECASE,
)
_TOP_LEVEL = (
    "com|org|net|info|biz|name|pro|edu|gov|mil|int|io|co|me|tv|cc|ws|ly|gl|gg|ai|app|dev|xyz|top|site|online|shop|"
    "club|store|live|link|click|news|blog|page|web|work|world|life|today|fun|icu|vip|win|bid|"
    "jp|cn|tw|hk|kr|ru|su|ua|de|fr|it|es|pt|nl|be|ch|at|pl|cz|se|no|dk|fi|uk|ie|us|ca|br|mx|ar|cl|au|nz|in|id|vn|"
    "th|my|sg|ph|tr|ir|il|sa|ae|za|ng|ke|eu|onion|example|test"
)
_DOMAIN = re.compile(
    r"(?<![\w.\-])((?:[^\W_][\w\-]*\.)+)(" + _TOP_LEVEL + r")(?![\w\-])(?:[/?#:][!-~]*)?",
    re.IGNORECASE,
)
_ADDRESS_WITH_PATH = re.compile(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?::\d+|/)[!-~]*")
_AT = re.compile(r"[@\uff20\ufe6b]")
_MENTION = re.compile(r"(?<![\w.\-])[@\uff20\ufe6b]+(?=\w)")
_HASHTAG = re.compile(r"[#\uff03\ufe5f]+(?=[^\s#\uff03\ufe5f])")
_SPACES = re.compile(r"[ \t\f\v]+")
_LINE_ENDS = re.compile(r" ?\n ?")
_BLANK_LINES = re.compile(r"\n{3,}")

_SCRIPTS = {
    "ja": ("HIRAGANA", "KATAKANA", "CJK"),
    "zh": ("CJK",),
    "ko": ("HANGUL",),
    "ru": ("CYRILLIC",),
    "uk": ("CYRILLIC",),
    "bg": ("CYRILLIC",),
    "el": ("GREEK",),
    "ar": ("ARABIC",),
    "fa": ("ARABIC",),
    "ur": ("ARABIC",),
    "he": ("HEBREW",),
    "th": ("THAI",),
    "hi": ("DEVANAGARI",),
    **dict.fromkeys(
        "en de fr es it pt nl sv da no nb fi pl cs hu ro tr id vi ca".split(), ("LATIN",)
    ),
}
"""The scripts in which a language is written. A language that is not here is not checked."""

SCRIPT_SHARE_MIN = 0.25
"""A text in one language may name much in another, so a quarter of its letters is enough."""

KANA_EXPECTED_LETTERS = 40
"""No Japanese text of so many letters is without kana; a Chinese one is."""


class OutputRefused(Exception):
    """What the model wrote cannot be posted. It is the item's failure, as a refused answer is."""

    def __init__(self, why: str) -> None:
        super().__init__(why)
        self.why = why


def guarded(text: str) -> str:
    """`text` as plain words: no link, mention, hashtag, control or invisible character."""
    text = _visible(unicodedata.normalize("NFC", text))
    # Until nothing is found: what a removal brings together may be a link again.
    while (plain := _plain(text)) != text:
        text = plain
    text = _LINE_ENDS.sub("\n", _SPACES.sub(" ", text))
    return _BLANK_LINES.sub("\n\n", text).strip()


def guarded_line(text: str) -> str:
    """The same on one line: a title or a name."""
    return " ".join(guarded(text).split())


def guarded_summary(text: str, *, language: str) -> str:
    """The same for a summary. Raises `OutputRefused` if nothing is left, or if it is in another language."""
    summary = guarded(text)
    if not any(letter.isalnum() for letter in summary):
        raise OutputRefused("the summary is empty")
    if not is_in_language(summary, language):
        raise OutputRefused(f"the summary is not in the requested language ({language})")
    return summary


def is_in_language(text: str, language: str) -> bool:
    """Whether `text` is written in a script of the language. Languages that share one are not told apart."""
    scripts = _SCRIPTS.get(language.partition("-")[0].lower())
    used = [_script(letter) for letter in text if letter.isalpha()]
    if scripts is None or not used:
        return True
    is_chinese = len(used) >= KANA_EXPECTED_LETTERS and not {"HIRAGANA", "KATAKANA"} & {*used}
    if "HIRAGANA" in scripts and is_chinese:
        return False
    return sum(script in scripts for script in used) >= SCRIPT_SHARE_MIN * len(used)


@lru_cache(maxsize=10_000)
def _script(letter: str) -> str:
    return unicodedata.name(letter, "").partition(" ")[0]


def _plain(text: str) -> str:
    text = _ADDRESS_WITH_PATH.sub("", _LINK.sub("", text))
    text = _DOMAIN.sub(lambda found: f"{found[1].replace('.', '[.]')}{found[2]}", text)
    return _HASHTAG.sub("", _AT.sub(" (at) ", _MENTION.sub("", text)))


def _visible(text: str) -> str:
    if text.isascii() and text.isprintable():
        return text
    kept: list[str] = []
    marks = 0
    for place, letter in enumerate(text):
        category = unicodedata.category(letter)
        marks = marks + 1 if category in ("Mn", "Me") else 0
        if letter == "\n" or category in ("Zl", "Zp"):
            kept.append("\n")
        elif letter in "\t\r\f\v" or (category == "Zs" and letter != "\u3000"):
            kept.append(" ")
        elif letter in (JOINER, NON_JOINER):
            if kept and _joins(kept[-1], text[place + 1 : place + 2]):
                kept.append(letter)
        elif _is_kept(letter, category) and marks <= COMBINING_MARKS_MAX:
            kept.append(letter)
    return "".join(kept)


def _is_kept(letter: str, category: str) -> bool:
    return not category.startswith("C") and letter not in _INVISIBLE


def _joins(before: str, after: str) -> bool:
    """Whether a joiner between these has a use: in an emoji of several, or in a script that joins letters."""
    return all(
        part and ord(part) > 0x2FF and unicodedata.category(part) in ("So", "Sk", "Lo", "Mn", "Mc")
        for part in (before, after)
    )
