"""Whether an import statement names the file in which something is defined."""

import re
import sys
from enum import StrEnum
from pathlib import Path

from tsuzuki.collectors.codeindex.answers.source_file import SourceFile
from tsuzuki.collectors.codeindex.answers.symbol import Site

STATEMENT_LINES_MAX = 60
_PACKAGE_FILES = {
    "py": {"__init__"},
    "pyi": {"__init__"},
    "rs": {"mod", "lib", "main"},
    **{suffix: {"index"} for suffix in ("js", "jsx", "mjs", "cjs", "ts", "tsx")},
}
_STARTS = re.compile(
    r"\s*(from|import|use|using|export|require|require_relative|include|const|let|var|#\s*include"
    r"|alias|pub\s+use|static|\}?\s*=|open|package)\b"
)
_PYTHON_STARTS = re.compile(r"\s*(?:from|import)\b")
_RENAMED = re.compile(r"\s+as\s+(\w+)")
_PYTHON_FROM_START = re.compile(r"\s*from\b")
_PYTHON_IMPORTS_NAME = re.compile(
    r"\s*(?:from\b[^\n]*?\bimport\b|import\s+(?:[\w.]+(?:\s+as\s+\w+)?\s*,\s*)*$)"
)
_ALIAS = re.compile(r"\bas\s+\w+")
_PYTHON_FROM = re.compile(r"\bfrom\s+(\.*)\s*([\w.]*)\s+import\b")
_PYTHON_IMPORT = re.compile(r"^\s*import\s+([\w.]+)", re.MULTILINE)
_SEPARATOR = r"[./\\:]+"
_RELATIVE = re.compile(r"""\bfrom\s+\.|["']\.\.?/|\b(crate|super|self)::""")


class ImportRole(StrEnum):
    """What a name in an import statement is to its file."""

    BOUND = "bound"
    """The file has it under this name."""

    RENAMED = "renamed"
    """The file has it under another name."""

    MODULE = "module"
    """It is a part of the name of a module."""


def import_role(source: SourceFile, site: Site) -> ImportRole:
    line = source.line(site.line)
    renamed = _RENAMED.match(line, site.column + len(site.name))
    if site.language == "python":
        start = _statement_start(source, site)
        before = [*map(source.line, range(start, site.line)), line[: site.column]]
        if not _PYTHON_IMPORTS_NAME.match("\n".join(before)):
            return ImportRole.MODULE
    is_renamed = renamed is not None and renamed[1] != site.name
    return ImportRole.RENAMED if is_renamed else ImportRole.BOUND


def is_module_import(source: SourceFile, site: Site) -> bool:
    """Whether `import name` binds a module of Python."""
    return site.language == "python" and not _PYTHON_FROM_START.match(
        source.line(_statement_start(source, site))
    )


def _statement_start(source: SourceFile, site: Site) -> int:
    starts = _PYTHON_STARTS if site.language == "python" else _STARTS
    start = site.line
    while start > max(1, site.line - STATEMENT_LINES_MAX) and not starts.match(source.line(start)):
        start -= 1
    return start


def statement_at(source: SourceFile, site: Site) -> str:
    """The import statement around a name: from the nearest line that starts one to where its brackets close."""
    line, text = site.line, ""
    start = _statement_start(source, site)
    for number in range(start, min(line + STATEMENT_LINES_MAX, source.line_count) + 1):
        text += source.line(number) + "\n"
        if number >= line and _is_closed(text):
            break
    return text


def _is_closed(text: str) -> bool:
    return all(text.count(left) <= text.count(right) for left, right in ("()", "{}"))


def module_segments(path: str) -> list[str]:
    """`a/b/c.py` is a, b, c; a file that stands for its folder is left out."""
    *folders, name = path.split("/")
    stem, _, suffix = name.partition(".")
    return folders if folders and stem in _PACKAGE_FILES.get(suffix, ()) else [*folders, stem]


def import_score(statement: str, path: str, *, from_path: str, name: str) -> int:
    """How well a statement in `from_path` that imports `name` says that it is in the file at `path`; 0 is not at
    all."""
    if from_path.endswith((".py", ".pyi")):
        return _python_score(statement, path, from_path, name)
    return _text_score(_ALIAS.sub("", statement), path, from_path)


def may_be_module(root: Path, statement: str, *, from_path: str, name: str) -> bool:
    """Whether the tree has a module of Python that the imported `name` can be."""
    folders = from_path.split("/")[:-1]
    for dots, dotted in _PYTHON_FROM.findall(statement):
        package = folders[: len(folders) - len(dots) + 1] if dots else []
        module = root.joinpath(*package, *dotted.split("."), name)
        if module.is_dir() or module.with_name(f"{name}.py").is_file():
            return True
    return False


def names_module(statement: str, path: str, *, from_path: str, name: str) -> bool:
    """Whether a statement of Python binds `name` to the very module at `path`."""
    target = module_segments(path)
    folders = from_path.split("/")[:-1]
    for dots, dotted in _PYTHON_FROM.findall(statement):
        wanted = [*(part for part in dotted.split(".") if part), name]
        if dots and target == [*folders[: len(folders) - len(dots) + 1], *wanted]:
            return True
        if not dots and target[-len(wanted) :] == wanted:
            return True
    return any(
        target[-1:] == [name] and target[-len(parts) :] == parts
        for dotted in _PYTHON_IMPORT.findall(statement)
        if (parts := dotted.split("."))
    )


def _python_score(statement: str, path: str, from_path: str, name: str) -> int:
    """A statement that imports from the very module scores highest, then one that imports from its package. What has
    the name of a module of that package may be that module."""
    target = module_segments(path)
    folders = from_path.split("/")[:-1]
    best = 0
    modules = _PYTHON_FROM.findall(statement)
    modules += [("", dotted) for dotted in _PYTHON_IMPORT.findall(statement)]
    for dots, dotted in modules:
        module = [part for part in dotted.split(".") if part]
        if dots:
            whole = [*folders[: len(folders) - len(dots) + 1], *module]
            found = 3 * (target == whole) or (
                target[: len(whole)] == whole and target[len(whole)] != name
            )
        elif module[:1] and module[0] in sys.stdlib_module_names and target != module:
            found = 0
        else:
            found = 3 * (target[-len(module) :] == module) or (
                _has_run(target, module) and not _has_run(target, [*module, name])
            )
        best = max(best, int(found) * (1 + len(module)) if module or dots else 0)
    return best


def _has_run(segments: list[str], wanted: list[str]) -> bool:
    """Whether the wanted segments stand one after the other in them."""
    size = len(wanted)
    return any(segments[start : start + size] == wanted for start in range(len(segments)))


def _text_score(statement: str, path: str, from_path: str) -> int:
    segments = module_segments(path)
    near = bool(_RELATIVE.search(statement)) and path.split("/")[:-1] == from_path.split("/")[:-1]
    for length in range(len(segments), 0, -1):
        joined = _SEPARATOR.join(re.escape(segment) for segment in segments[-length:])
        if re.search(rf"(?<![\w-]){joined}(?![\w-])", statement):
            return 10 * length + 2 + near
    in_package = any(
        re.search(rf"(?<![\w-]){re.escape(folder)}(?![\w-])", statement) for folder in segments[:-1]
    )
    return 2 * in_package + near
