"""Lines by text: by git and by a scan of our own the same."""

import subprocess
from pathlib import Path

import pytest

from tsuzuki.collectors.codeindex.answers.path_filter import PathFilter
from tsuzuki.collectors.codeindex.answers.text_search import FoundLine, TextQuery, search_text
from tsuzuki.collectors.codeindex.tree.scan import scan_tree

FILES = {
    "a.py": "first\nneedle = 1\n",
    "deep/b.txt": "no\nanother needle 42, Ünïcode\n",
    "deep/crlf.txt": "needle\r\n",
    "-odd name:1.txt": "needle\n",
    "new\nline.txt": "needle\n",
}


@pytest.fixture(params=["git", "scan"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    for path, text in FILES.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_bytes(text.encode())
    (root / "binary.bin").write_bytes(b"needle\0")
    if request.param == "git":
        subprocess.run(["git", "init", "-q"], cwd=root, check=True)
        subprocess.run(["git", "add", "a.py"], cwd=root, check=True)
    return root


def found(root: Path, text: str, *, limit: int = 100, **query: object) -> list[FoundLine]:
    scan = scan_tree(root)
    scanned = [file.path for file in scan.files]
    wanted = TextQuery(text=text, **query)  # type: ignore[arg-type]
    return search_text(root, wanted, limit=limit, scanned=scanned, listed=scan.listed)[0]


def test_tracked_and_untracked_files_are_searched_and_binaries_are_not(root: Path) -> None:
    assert {line.path: (line.line, line.column) for line in found(root, "needle")} == {
        "a.py": (2, 0),
        "deep/b.txt": (2, 8),
        "deep/crlf.txt": (1, 0),
        "-odd name:1.txt": (1, 0),
        "new\nline.txt": (1, 0),
    }
    assert next(line.text for line in found(root, "needle") if "crlf" in line.path) == "needle"


def test_a_text_is_no_expression_unless_it_is_said(root: Path) -> None:
    assert found(root, "needl.") == []
    (line,) = found(root, r"needle \d+", is_regex=True)
    assert (line.path, line.column) == ("deep/b.txt", 8)
    assert len(found(root, "^needle$", is_regex=True, path_filter=PathFilter(["*.txt"]))) == 3


def test_case_is_ignored_if_asked_beyond_ascii_too(root: Path) -> None:
    assert found(root, "ünÏCODE") == []
    assert [line.path for line in found(root, "ünÏCODE", ignore_case=True)] == ["deep/b.txt"]


def test_a_limit_ends_the_search(root: Path) -> None:
    scan = scan_tree(root)
    scanned = [file.path for file in scan.files]
    lines, has_more = search_text(
        root, TextQuery(text="needle"), limit=2, scanned=scanned, listed=scan.listed
    )
    assert (len(lines), has_more) == (2, True)


def test_a_repository_inside_the_tree_is_searched(root: Path) -> None:
    inner = root / "inner"
    inner.mkdir()
    (inner / "c.py").write_text("needle\n")
    subprocess.run(["git", "init", "-q"], cwd=inner, check=True)
    assert "inner/c.py" in {line.path for line in found(root, "needle")}


def test_a_long_line_is_cut_around_its_match(root: Path) -> None:
    (root / "long.txt").write_text("x" * 5000 + "haystack" + "y" * 5000)
    (line,) = found(root, "haystack")
    assert line.column == 5000
    assert "haystack" in line.text
    assert len(line.text) == 300


def test_a_search_is_not_led_astray_by_variables_of_git(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_DIR", "/nowhere")
    assert "a.py" in {line.path for line in found(root, "needle")}
