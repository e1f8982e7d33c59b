"""A served workspace with an indexed tree: a few files, one with syntax errors, hostile names and texts."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from support.page_site import HOSTILE
from support.waiting import wait_until
from support.web_client import Served, served_application
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE

FILE = "jobs: {code: {type: codeindex, roots: [tree]}}\n"
FILES = {
    "shop/sums.py": 'def total(prices):\n    """The sum."""\n    return sum(prices)\n\n\n'
    "class Bill:\n    def tax(self):\n        return total([1, 2])\n",
    "shop/test_sums.py": "from shop.sums import total\n\n\ndef test_total():\n    assert total([]) == 0\n",
    "broken.py": "def half(:\n    pass\n",
    "read me.md": "# How to\n\ntotal is a sum\n",
    "<img src=x onerror=alert(1)>.py": f"# {HOSTILE}\ndef hostile_name():\n    return 1\n",
    "data.xyz": "no language\n",
}


@contextmanager
def code_site(folder: Path) -> Iterator[Served]:
    (folder / "tsuzuki.yaml").write_text(FILE, encoding="utf-8")
    for name, text in FILES.items():
        file = folder / "tree" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
    with pytest.MonkeyPatch.context() as patch, served_application(folder, fixed=False) as served:
        patch.setenv(FOLDER_VARIABLE, str(folder / "indexes"))
        client = served.client.as_(None)
        place = client.post("code/builds").headers["location"]
        wait_until(lambda: client.get(place).json["status"] != "running", "the build has ended")
        yield served
