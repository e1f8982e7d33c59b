"""Patterns of paths: names at any depth, paths from the top, folders with all in them."""

import pytest

from tsuzuki.collectors.commits.path_patterns import DEFAULT_PATTERNS, matcher


@pytest.mark.parametrize(
    ("pattern", "path", "matches"),
    [
        ("uv.lock", "uv.lock", True),
        ("uv.lock", "deep/er/uv.lock", True),
        ("uv.lock", "uvxlock", False),
        ("uv.lock", "my-uv.lock", False),
        ("vendor", "vendor/a/b.go", True),
        ("vendor/", "src/vendor/a.go", True),
        ("vendor", "src/vendors/a.go", False),
        ("/docs", "docs/a.md", True),
        ("/docs", "src/docs/a.md", False),
        ("docs/*.md", "docs/a.md", True),
        ("docs/*.md", "docs/deep/a.md", False),
        ("docs/**/*.md", "docs/deep/er/a.md", True),
        ("docs/**/*.md", "docs/a.md", True),
        ("**/fixtures/*.json", "a/b/fixtures/x.json", True),
        ("*.min.js", "web/app.min.js", True),
        ("a?.txt", "ab.txt", True),
        ("a?b", "a/b", False),
        ("[ab].txt", "b.txt", True),
        ("[!ab].txt", "b.txt", False),
        ("[!ab].txt", "c.txt", True),
        ("a[", "a[", True),
        ("café.txt", "café.txt", True),
        ("*", "any/thing", True),
    ],
)
def test_a_pattern(pattern: str, path: str, matches: bool) -> None:
    assert matcher([pattern])(path) is matches


@pytest.mark.parametrize("path", ["web/package-lock.json", "go.sum", "vendor/x/y.go", "a_pb2.py"])
def test_the_default_list_has_lock_files_and_vendored_code(path: str) -> None:
    assert matcher(DEFAULT_PATTERNS)(path)


@pytest.mark.parametrize("path", ["src/vendoring.py", "lock.py", "package.json", "min.js"])
def test_the_default_list_has_nothing_that_people_write(path: str) -> None:
    assert not matcher(DEFAULT_PATTERNS)(path)


def test_without_a_pattern_nothing_matches() -> None:
    assert not matcher([])("")
