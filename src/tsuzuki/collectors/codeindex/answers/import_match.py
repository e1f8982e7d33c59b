"""Whether an import statement names the file in which something is defined."""

import re

from tsuzuki.collectors.codeindex.answers.source_file import SourceFile

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
_ALIAS = re.compile(r"\bas\s+\w+")
_PYTHON_FROM = re.compile(r"\bfrom\s+(\.*)\s*([\w.]*)\s+import\b")
_PYTHON_IMPORT = re.compile(r"^\s*import\s+([\w.]+)", re.MULTILINE)
_SEPARATOR = r"[./\\:]+"
_RELATIVE = re.compile(r"""\bfrom\s+\.|["']\.\.?/|\b(crate|super|self)::""")


def statement_at(source: SourceFile, line: int) -> str:
    """The import statement around a line: from the nearest line that starts one to where its brackets close."""
    start = line
    while start > max(1, line - STATEMENT_LINES_MAX) and not _STARTS.match(source.line(start)):
        start -= 1
    text = ""
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
    """How well a statement in `from_path` that imports `name` says that it is in the file at `path`, or that it is
    that file; 0 is not at all."""
    if from_path.endswith((".py", ".pyi")):
        return _python_score(statement, path, from_path, name)
    return _text_score(_ALIAS.sub("", statement), path, from_path)


def _python_score(statement: str, path: str, from_path: str, name: str) -> int:
    """A module that imports from the very module scores highest, then one that imports from its package."""
    target = module_segments(path)
    folders = from_path.split("/")[:-1]
    best = 0
    modules = _PYTHON_FROM.findall(statement)
    modules += [("", dotted) for dotted in _PYTHON_IMPORT.findall(statement)]
    for dots, dotted in modules:
        module = [part for part in dotted.split(".") if part]
        for wanted in (module, [*module, name]):
            if dots:
                whole = [*folders[: len(folders) - len(dots) + 1], *wanted]
                found = 3 * (target == whole) or target[: len(whole)] == whole
            else:
                found = 3 * (target[-len(wanted) :] == wanted) or _has_run(target, wanted)
            best = max(best, int(found) * (1 + len(wanted)) if wanted or dots else 0)
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
