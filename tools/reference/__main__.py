"""Writes the pages of the reference into a folder: `python -m tools.reference docs/reference`."""

import sys
from pathlib import Path

from tools.reference.pages import PAGES

if __name__ == "__main__":
    for name, page in PAGES.items():
        (Path(sys.argv[1]) / name).write_text(page(), encoding="utf-8")
