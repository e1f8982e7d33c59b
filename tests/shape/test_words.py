"""One concept, one word: retired names stay out, and the glossary is a glossary.

A name is split into its words (`OneRunEngine`, `one_run_engine`: one, run, engine), so that a retired word is found
inside longer names too.
"""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("src", "tests", "bench", "docs")
RETIRED_WORDS = """
attendance bell bells begun complaint complaints courier crew desk ear ears endings errands expel expelled fleet
glance leash narrative papers patience postbox resumption shelf stage surroundings
""".split()
"""Words that no name has, whatever stands beside them."""

RETIRED_NAMES = """
chosen deed dispatch equipment ground grounds in_force journal leading led left line lines never_begun notices places
pulse role_identity room signals standing taking telling until_quiet worked
""".split()
"""Names that are too common as a part of others: they are refused as the whole name of a module or a class."""

ALLOWED = {
    "notices": "the table keeps its name",
    "rate_limit_patience": "a key of tsuzuki.yaml",
}
"""Retired words that people or stored data know."""

SHARED_CLASS_NAMES: dict[str, str] = {}
"""Names that several public classes may have, with the reason, such as a convention of all collectors."""

CLASS = re.compile(r"^\s*class (\w+)", re.MULTILINE)


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
    """The lower-case words of an identifier, a file name or a heading."""
    return re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())


def names_in(path: Path) -> Iterator[tuple[int, str]]:
    """What a module defines: classes, functions, parameters, variables and attributes."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield node.lineno, name
            case ast.AsyncFunctionDef(name=name) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()):
                yield node.lineno, name


def has_retired_word(name: str) -> bool:
    allowed = {word for known in ALLOWED if known in name.lower() for word in words_of(known)}
    return bool({*words_of(name)} & {*RETIRED_WORDS} - allowed)


def is_retired(name: str) -> bool:
    whole = "_".join(words_of(name))
    return whole in RETIRED_NAMES or has_retired_word(name)


@pytest.mark.parametrize(
    "name", ["Desk", "_Desk", "OutputDesk", "output_desk", "DESK_SIZE", "in_force"]
)
def test_a_retired_word_is_found_in_any_spelling(name: str) -> None:
    assert is_retired(name)


@pytest.mark.parametrize("name", ["desktop", "rate_limit_patience", "headline", "Deadline"])
def test_a_word_that_only_looks_like_it_is_not(name: str) -> None:
    assert not is_retired(name)


def test_no_file_or_folder_has_a_retired_name() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for path in checked(".py", ".md")
        for part in path.relative_to(ROOT).with_suffix("").parts
        if is_retired(part.removeprefix("test_"))
    }
    assert sorted(found) == []


def test_no_class_has_a_retired_name() -> None:
    found = [
        f"{path.relative_to(ROOT)}: {name}"
        for path in checked(".py")
        for name in CLASS.findall(path.read_text(encoding="utf-8"))
        if is_retired(name)
    ]
    assert found == []


def test_no_name_in_the_code_has_a_retired_word() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line} {name}"
        for path in checked(".py")
        for line, name in names_in(path)
        if has_retired_word(name)
    ]
    assert found == []


def test_no_heading_has_a_retired_word() -> None:
    documents = [*checked(".md"), *sorted(ROOT.glob("*.md"))]
    found = [
        f"{path.relative_to(ROOT)}: {heading}"
        for path in documents
        for heading in re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
        if has_retired_word(heading)
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
