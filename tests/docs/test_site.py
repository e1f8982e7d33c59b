"""`docs/` builds into a static site without a warning, and the site needs nothing from other hosts."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOADED = re.compile(r"""<(?:script|link|img)[^>]+(?:src|href)=["'](https?:)?//""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)]
    built = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    assert "WARNING" not in built.stderr
    return folder


def test_every_page_of_the_documentation_is_in_the_site(site: Path) -> None:
    pages = [
        path.relative_to(ROOT / "docs").with_suffix(".html")
        for path in (ROOT / "docs").rglob("*.md")
        if path.name != "README.md"
    ]
    assert [page for page in pages if not (site / page).is_file()] == []
    assert (site / "index.html").is_file()
    assert (site / "project" / "architecture.html").is_file()


def test_no_page_loads_anything_from_another_host(site: Path) -> None:
    loading = [page.name for page in site.rglob("*.html") if LOADED.search(page.read_text("utf-8"))]
    assert loading == []


def test_no_code_block_is_left_as_text(site: Path) -> None:
    """A fence whose first line the site's Markdown does not understand would show its backticks."""
    broken = [page.name for page in site.rglob("*.html") if "```" in page.read_text("utf-8")]
    assert broken == []
