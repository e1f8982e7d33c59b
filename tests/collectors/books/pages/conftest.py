"""Fixtures of `support.page_fixtures`."""

from support.page_fixtures import (
    chromium,
    layouts,
    person,
    site,
)

__all__ = [
    "chromium",
    "layouts",
    "person",
    "site",
]
