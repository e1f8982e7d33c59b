"""A catalogue of invented books, for the search of the demo."""

from itertools import product
from typing import Any

from tsuzuki.collectors.books.sandbox.google_books import volume

SUBJECT = "astronomy"
SUBJECTS = (
    "Comets",
    "Variable Stars",
    "The Moon",
    "Eclipses",
    "Galaxies",
    "Telescopes",
    "Meteors",
    "The Sun",
)
FORMS = (
    "{}: An Introduction",
    "A Field Guide to {}",
    "{} for Beginners",
    "The Observer's Book of {}",
    "{} in Fifty Pictures",
    "A Short History of {}",
    "{} and How They Were Found",
    "Measuring {}",
    "{}: Questions and Answers",
    "Drawing {}",
)  # fmt: skip
AUTHORS = (
    "Ada Lindgren",
    "Rui Tanaka",
    "Ife Balogun",
    "Marta Novak",
    "Jon Eide",
    "Lea Moreau",
    "Tomas Vidal",
)
PUBLISHERS = ("Harbour Press", "North Window", "Quiet Sky Books", "Lantern House")
EDITIONS = (
    "",
    " (Second Edition)",
    " (Third Edition)",
    " (Pocket Edition)",
    " (Large Print)",
    " (Illustrated)",
)
OLDEST_YEAR = 2004


def demo_catalogue() -> list[dict[str, Any]]:
    """480 volumes, twelve pages of the largest size."""
    titles = [
        form.format(subject) + edition
        for edition, form, subject in product(EDITIONS, FORMS, SUBJECTS)
    ]
    return [_volume(number, title) for number, title in enumerate(titles)]


def _volume(number: int, title: str) -> dict[str, Any]:
    return volume(
        number,
        title=title,
        authors=[AUTHORS[number % len(AUTHORS)]],
        publisher=PUBLISHERS[number % len(PUBLISHERS)],
        publishedDate=f"{OLDEST_YEAR + number * 7 % 22}-{1 + number * 5 % 12:02d}",
        description=f"What can be seen, and how it came to be known. An invented book on {SUBJECT}.",
        categories=[SUBJECT.capitalize()],
    )
