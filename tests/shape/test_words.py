"""One concept, one word: retired names stay out, and the glossary is a glossary.

These tests guard what was decided; they have no opinion about English.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "bench", "docs")
RETIRED_NAMES = """
attendance bell bells complaint complaints courier crew deed desk ear ears endings errands fleet glance grounds
in_force leash narrative never_begun papers patience postbox pulse resumption role_identity shelf standing
surroundings telling until_quiet
""".split()
"""Names that were given up for the field's words: no file, folder, class, function or field has one of them as its
whole name. As a part of a longer name, or as a word in a sentence, each is as good as any other."""

SHARED_CLASS_NAMES: dict[str, str] = {
    "Job": "a stored job; in the library a function that was made one, as its users know it",
}
"""Names that several public classes may have, with the reason, such as a convention of all collectors."""


def checked(*suffixes: str, folders: tuple[str, ...] = FOLDERS) -> list[Path]:
    """Files of the project, without migrations, which never change once they were released, and this one."""
    return [
        path
        for folder in folders
        for path in sorted((ROOT / folder).rglob("*"))
        if path.suffix in suffixes
        and "versions" not in path.parts
        and ".peers" not in path.parts
        and path != Path(__file__)
    ]


def words_of(name: str) -> list[str]:
    """The lower-case words of an identifier or a file name."""
    return re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())


def names_in(path: Path) -> Iterator[tuple[int, str]]:
    """What a module defines for others: classes, functions and the fields of classes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield node.lineno, name
            case ast.AsyncFunctionDef(name=name):
                yield node.lineno, name
        if isinstance(node, ast.ClassDef):
            for field in node.body:
                if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
                    yield field.lineno, field.target.id


def is_retired(name: str) -> bool:
    return "_".join(words_of(name)) in RETIRED_NAMES


@pytest.mark.parametrize("name", ["Desk", "_Desk", "desk", "InForce", "in_force"])
def test_a_retired_name_is_found_in_any_spelling(name: str) -> None:
    assert is_retired(name)


@pytest.mark.parametrize("name", ["desktop", "desk_size", "long_standing", "rate_limit_patience"])
def test_a_longer_name_is_free(name: str) -> None:
    assert not is_retired(name)


def test_no_file_or_folder_has_a_retired_name() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in checked(".py", ".md")
        for part in path.relative_to(ROOT).with_suffix("").parts
        if is_retired(part.removeprefix("test_"))
    }
    assert sorted(found) == []


def test_no_name_in_the_code_is_retired() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in checked(".py")
        for line, name in names_in(path)
        if is_retired(name)
    ]
    assert found == []


def test_the_glossary_explains_each_word_once_in_one_line() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Glossary")[2]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", text, flags=re.MULTILINE)[1:]
    words = [word for word, _ in rows]
    assert words
    assert words == sorted(set(words))


def public_classes() -> Iterator[tuple[str, str]]:
    """Each public class at the top of a module of the product, and the module."""
    for path in checked(".py", folders=("src",)):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                yield node.name, path.relative_to(ROOT).as_posix()


def test_a_class_name_has_one_meaning() -> None:
    modules = defaultdict(list)
    for name, module in public_classes():
        modules[name].append(module)
    shared = {name: where for name, where in modules.items() if len(where) > 1}
    assert {name: where for name, where in shared.items() if name not in SHARED_CLASS_NAMES} == {}
    assert SHARED_CLASS_NAMES.keys() <= shared.keys()
