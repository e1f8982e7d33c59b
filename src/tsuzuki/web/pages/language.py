"""The languages of the page. English stands in the source; other languages in `.po` files, one per screen.

They are read when first needed, so that nothing must be compiled. A message that two files translate must have the
same translation in both.
"""

from functools import cache
from io import BytesIO
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po
from babel.support import NullTranslations, Translations

LANGUAGES = {"en": "English", "ja": "日本語"}
DEFAULT_LANGUAGE = "en"


def message(text: str) -> str:
    """Marks a text of the code as one to be translated; the same text."""
    return text


@cache
def translations(language: str) -> NullTranslations:
    """The messages of a language; English has its own words."""
    catalogue = Catalog(locale=language)
    for file in catalogue_files(f"{language}/*.po"):
        with file.open("rb") as content:
            for entry in read_po(content, locale=language):
                if entry.id:
                    catalogue.add(entry.id, entry.string, context=entry.context)
    packed = BytesIO()
    write_mo(packed, catalogue)
    packed.seek(0)
    return Translations(packed)


def catalogue_files(pattern: str) -> list[Path]:
    """The files below `locale` of the host and of every collector that match."""
    from tsuzuki.web.pages.extension import folders  # noqa: PLC0415 -- its menu entries mark their labels with `message`

    return [file for folder in folders("locale") for file in sorted(folder.glob(pattern))]


def preferred_language(header: str) -> str:
    """The language of the page that an `Accept-Language` header likes best."""
    wanted: list[tuple[float, int, str]] = []
    for position, part in enumerate(header.split(",")[:20]):
        name, _, quality = part.strip().partition(";q=")
        try:
            weight = float(quality) if quality else 1.0
        except ValueError:
            weight = 0.0
        language = name.partition("-")[0].lower()
        if language in LANGUAGES and weight > 0:
            wanted.append((-weight, position, language))
    return min(wanted)[2] if wanted else DEFAULT_LANGUAGE
