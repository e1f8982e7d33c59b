"""Reads the unit cases of universal-ctags from a folder: what each expects to be found, and what we find.

A case is a folder with `input.*` and `expected.tags`. Only tags of kinds that are definitions to us are counted, by
their name, without those that come from options we do not have: guest languages, macros of the command line.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tsuzuki.collectors.codeindex.extract import ExtractionFailed, extract

_TAG = re.compile(r"(?P<name>[^\t!][^\t]*)\t(?P<file>[^\t]+)\t(?:/.*/|\d+);\"\t(?P<rest>.*)")
_OTHER_OPTIONS = re.compile(r"guest|^-D|param-CPreProcessor|langmap|regex|optlib", re.MULTILINE)
_ANONYMOUS = re.compile(r"(?:__anon|anon|Anonymous|<)\w*")


class Expected(NamedTuple):
    """A folder of cases, the language that its files are, and the kinds of tags that count."""

    folder: str
    language: str
    kinds: str


_C = "d e f g m p s t u v macro enumerator function enum member prototype struct typedef union variable"
_HEADINGS = "c s S t T u chapter section subsection subsubsection l4subsection l5subsection"
EXPECTED = (
    Expected("python", "python", "c f m v class function member variable"),
    Expected("c", "c", _C),
    Expected("cxx", "cpp", f"{_C} c n class namespace"),
    Expected("csharp", "csharp", "c d e E f g i m n p s t"),
    Expected("java", "java", "a c e f g i m p r class method field enum interface"),
    Expected(
        "javascript",
        "javascript",
        "f c m p C v g G S M function class method property constant variable generator getter setter field",
    ),
    Expected("typescript", "typescript", "f c i g e m n p v C G a"),
    Expected("go", "go", "p f c t v s i m M n a package func methodSpec interface struct"),
    Expected("rust", "rust", "n s i f g t v M m e P C"),
    Expected("ruby", "ruby", "c f m S C A a class singletonMethod method module"),
    Expected("php", "php", "c d f i n t v"),
    Expected("kotlin", "kotlin", "p i c o m T C v"),
    Expected("lua", "lua", "f"),
    Expected("sh", "bash", "f a"),
    Expected("sql", "sql", "f p P t T V i"),
    Expected("html", "html", "a I"),
    Expected("css", "css", "c i"),
    Expected("markdown", "markdown", _HEADINGS),
    Expected("json", "json", "o a n s b z"),
    Expected("yaml", "yaml", "a"),
    Expected("toml", "toml", "qkey table K t arraytable"),
)


class Agreement(NamedTuple):
    expected: int
    found: int
    missing: list[str]
    """What was not found: the case, the kind and the name."""

    @property
    def share(self) -> float:
        return self.found / self.expected if self.expected else 1.0


def agreement(units: Path, wanted: Expected) -> Agreement:
    """How much of what the cases of a language expect is found."""
    count, missing = 0, []
    for case in sorted((units / f"parser-{wanted.folder}.r").glob("**/expected.tags")):
        arguments = case.with_name("args.ctags")
        if arguments.exists() and _OTHER_OPTIONS.search(arguments.read_text("utf-8", "replace")):
            continue
        for source in sorted(case.parent.glob("input*")):
            names = _names(wanted.language, source.read_bytes())
            for kind, name in _tags(case, source.name):
                if kind not in wanted.kinds.split():
                    continue
                count += 1
                if _plain(name, wanted.language) not in names:
                    missing.append(f"{case.parent.name} {kind} {name}")
    return Agreement(count, count - len(missing), missing)


def _names(language: str, source: bytes) -> set[str]:
    try:
        found = extract(language, source, seconds_max=10).definitions
    except ExtractionFailed:
        return set()
    return {_plain(one.name, language) for one in found}


def _tags(case: Path, file_name: str) -> Iterator[tuple[str, str]]:
    """The kind and the name of each tag of a file that is a definition and has a name of its own."""
    for line in case.read_text("utf-8", "replace").splitlines():
        tag = _TAG.fullmatch(line)
        if tag is None or tag["file"] != file_name or _ANONYMOUS.match(tag["name"]):
            continue
        fields = tag["rest"].split("\t")
        if any(one.startswith("roles:") and one != "roles:def" for one in fields):
            continue
        kind = next((one for one in fields if one.startswith("kind:")), fields[0])
        yield kind.removeprefix("kind:"), tag["name"].replace("\\\\", "\\")


def _plain(name: str, language: str) -> str:
    """A name as both write it: ctags can put what contains it before it."""
    name = name.replace(" *", "*").replace("* ", "*") if language == "cpp" else name
    if language == "css":
        return re.split(r"[\s.#>+~]+", name)[-1]
    if language in ("json", "toml", "yaml", "markdown", "html", "sql", "bash"):
        return name.rpartition(".")[2] if language in ("json", "toml") else name
    name = name.rpartition("::")[2] if language in ("cpp", "c", "ruby") else name
    name = name.removesuffix("=") if language == "ruby" else name
    return name.strip("`'\"").rpartition("." if "." in name.strip(".") else "\0")[2]
