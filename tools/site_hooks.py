"""mkdocs hooks: navigation, pages from outside `docs/`, and links that leave it.

A new page in a folder of `docs/` is in the navigation by itself. A link to a file that the site does not have
becomes the path of that file: the site is read without the repository.
"""

import re
from pathlib import Path, PurePosixPath
from posixpath import normpath, relpath
from typing import Any

from mkdocs.structure.files import File

ROOT = Path(__file__).parents[1]
DOCS = "docs"
SECTIONS = {
    "Guides": "guide",
    "Reference": "reference",
    "Operations": "ops",
    "Discussion": "discussion",
    "Decisions": "decisions",
}
"""Folders of `docs/` by section title."""

OUTSIDE = {
    path.relative_to(ROOT).as_posix(): f"project/{name}"
    for name, path in {
        "architecture.md": ROOT / "ARCHITECTURE.md",
        "changelog.md": ROOT / "CHANGELOG.md",
        "readme.md": ROOT / "README.md",
        "readme-ja.md": ROOT / "README.ja.md",
        "deploy.md": ROOT / "deploy" / "README.md",
        **{
            f"{path.parent.name}.md": path
            for path in sorted((ROOT / "examples").glob("*/README.md"))
        },
    }.items()
    if path.exists()
}
"""Pages of the repository that stand outside `docs/`, with their place in the site."""

_LINK = re.compile(r"(!?)\[([^\]]*)\]\(([^)\s#:]+)(#[^)\s]*)?\)")
_FENCE = re.compile(r"^```(\w+) .*$", re.MULTILINE)


def on_config(config: Any) -> Any:
    config.nav = [{"Home": "README.md"}, {"Quickstart": "quickstart.md"}, *map(_section, SECTIONS)]
    config.nav.append({"Project": ["contributing.md", *sorted(OUTSIDE.values())]})
    return config


def on_files(files: Any, config: Any) -> Any:
    for source, target in OUTSIDE.items():
        text = (ROOT / source).read_text(encoding="utf-8")
        files.append(File.generated(config, target, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    place = page.file.src_uri
    source = next((key for key, value in OUTSIDE.items() if value == place), f"{DOCS}/{place}")

    def linked(match: re.Match[str]) -> str:
        mark, words, target, anchor = match.groups()
        path = normpath(PurePosixPath(source).parent / target)
        found = _place_of(path)
        if not (ROOT / path).exists():
            return match[0]  # mkdocs warns of it
        if found is None:
            return f"{words} (`{path}`)"
        leads = relpath(found, PurePosixPath(place).parent)
        return f"{mark}[{words}]({leads}{anchor or ''})"

    return _FENCE.sub(r"```\1", _LINK.sub(linked, markdown))


def _section(title: str) -> dict[str, list[str]]:
    """Pages of a folder: first those in its README, in that order, then all others."""
    folder = ROOT / DOCS / SECTIONS[title]
    names = [path.name for path in sorted(folder.glob("*.md"))]
    first = folder / "README.md"
    listed = _LINK.findall(first.read_text(encoding="utf-8")) if first.exists() else []
    order = [first.name, *(target for _, _, target, _ in listed)]
    names.sort(key=lambda name: order.index(name) if name in order else len(order))
    return {title: [f"{SECTIONS[title]}/{name}" for name in names]}


def _place_of(path: str) -> str | None:
    """Path of a repository file in the site; a folder means its README."""
    if (ROOT / path).is_dir():
        path = f"{path}/README.md"
    if path in OUTSIDE:
        return OUTSIDE[path]
    is_ours = path.startswith(f"{DOCS}/") and (ROOT / path).is_file()
    return path.removeprefix(f"{DOCS}/") if is_ours else None
