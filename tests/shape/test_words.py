"""One concept, one word: retired names stay out, and the glossary is a glossary."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "tsuzuki"

RETIRED_MODULES = """
attendance bell chosen complaints courier crew desk dispatch ear endings errands fleet glance
in_force journal leading line narrative never_begun notices patience postbox resumption role_identity
room shelf standing taking telling until_quiet worked
""".split()
RETIRED_NAMES = """
Attendance Bell Bells Begun Chosen Courier Crew Deed Desk Ear Equipment Errands Fleet Glance Ground
Leading Leash Led Left Line Lines Narrative NeverBegun Papers Patience Places Postbox Pulse Room
Signals Stage Standing Surroundings Taking Worked
""".split()
METAPHORS = re.compile(r"\b(whoever|somebody|nobody|anybody)\b", re.IGNORECASE)
GLOSSARY_WORDS_MIN = 40


def modules() -> list[Path]:
    return [path for path in sorted(SOURCE.rglob("*.py")) if "versions" not in path.parts]


def defined_names(path: Path) -> Iterator[str]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name.lstrip("_")


def test_no_module_has_a_retired_name() -> None:
    found = [str(path.relative_to(SOURCE)) for path in modules() if path.stem in RETIRED_MODULES]
    assert found == []


def test_no_class_or_function_has_a_retired_name() -> None:
    found = [
        f"{path.relative_to(SOURCE)}: {name}"
        for path in modules()
        for name in defined_names(path)
        if name in RETIRED_NAMES
    ]
    assert found == []


def test_prose_names_the_thing_instead_of_somebody() -> None:
    found = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in modules()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if METAPHORS.search(line)
    ]
    assert found == []


def test_the_glossary_explains_each_word_once_in_one_line() -> None:
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").partition("## Glossary")[2]
    rows = re.findall(r"^\| (.+?) \| (.+?) \|$", text, flags=re.MULTILINE)[1:]
    words = [word for word, _ in rows]
    assert len(words) >= GLOSSARY_WORDS_MIN
    assert words == sorted(set(words))
