"""Whether an import statement names the file in which something is defined."""

import re

from tsuzuki.collectors.codeindex.answers.source_file import SourceFile
from tsuzuki.collectors.codeindex.answers.symbol import Site

STATEMENT_LINES_MAX = 60
_PACKAGE_FILES = {
    "rs": {"mod", "lib", "main"},
}
_STARTS = re.compile(
    r"\s*(from|import|use|using|require|require_relative|include|const|let|var|#\s*include"
    r"|alias|pub\s+use|static|\}?\s*=|open|package)\b"
)
_RENAMED = re.compile(r"\s+as\s+(\w+)")
_ALIAS = re.compile(r"\bas\s+\w+")
_SEPARATOR = r"[./\\:]+"
_RELATIVE = re.compile(r"""\bfrom\s+\.|["']\.\.?/|\b(crate|super|self)::""")


def is_renamed(source: SourceFile, site: Site) -> bool:
    """Whether an import gives the name in it another one for its file."""
    renamed = _RENAMED.match(source.line(site.line), site.column + len(site.name))
    return renamed is not None and renamed[1] != site.name


def _statement_start(source: SourceFile, site: Site) -> int:
    start = site.line
    while start > max(1, site.line - STATEMENT_LINES_MAX) and not _STARTS.match(source.line(start)):
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


def import_score(statement: str, path: str, *, from_path: str) -> int:
    """How well a statement in `from_path` says that what it imports is in the file at `path`; 0 is not at all."""
    statement = _ALIAS.sub("", statement)
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
