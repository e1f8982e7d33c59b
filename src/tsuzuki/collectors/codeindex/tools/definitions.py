"""The tool set `code`, as agents see it. The definitions stay small: agents carry them in every turn."""

from typing import Any

from tsuzuki.collectors.codeindex.rights import CODE_BUILD, CODE_READ
from tsuzuki.mcp.parameters import CURSOR, budget_parameter, parameter
from tsuzuki.mcp.tool import Tool, ToolParameter
from tsuzuki.mcp.tool_set import ToolSet

_INSTRUCTIONS = (
    "Questions about source code: use these tools before grep and before reading whole "
    "files.\ncode_search finds definitions by any part of their name, and text; "
    "code_read returns the current source with line numbers.\ncode_references lists "
    "the uses of a symbol and how certain each is; code_outline and code_map give an "
    "overview.\nAnswers are checked against the current files. Nothing has to be built "
    "first; answers marked `building` are partial.\nEvery answer fits into `budget` "
    "tokens; `cursor` continues it. Name symbols as Class/method or file:name."
)

_MODULE = "tsuzuki.collectors.codeindex.tools"
_ONE_OR_MORE = ["string", "array"]
"""Only where it matters: some clients do not know a list of types. One text for a list is understood everywhere."""


_PATH = parameter(
    "path", "string", "root", "directory", "dir", "folder", "cwd", "project", "repo", "repository"
)
_FILE_NAMES = ("file_path", "filename", "filepath", "file_name", "files", "uri")
_GLOB = parameter(
    "glob",
    "array",
    *("globs", "include", "includes", "file_pattern", "paths", "filter"),
    description="patterns like .gitignore: *.py, src/, !tests",
)


def _common(budget_max: int, *, cursor: bool = True) -> tuple[ToolParameter, ...]:
    return (
        _PATH,
        budget_parameter(budget_max),
        *((CURSOR,) if cursor else ()),
    )


def _tool(
    name: str, description: str, *parameters: ToolParameter, budgets: tuple[int, int], **more: Any
) -> Tool:
    default, most = budgets
    has_cursor = bool(more.pop("cursor", True))
    more.setdefault("right", CODE_READ if more.get("is_read_only", True) else CODE_BUILD)
    return Tool(
        name=name,
        description=description,
        parameters=(*parameters, *_common(most, cursor=has_cursor)),
        budget_default=default,
        budget_max=most,
        **more,
    )


SEARCH = _tool(
    "code_search",
    "Use instead of grep to find where something is defined or mentioned. Names match "
    "in full, by their beginning, by any part or by the beginnings of their words "
    "(buMan finds BuildJobManager); Class/part searches within a class. Returns "
    "definitions first, with signature and doc, then lines of text by file.",
    parameter(
        "query",
        _ONE_OR_MORE,
        *("q", "pattern", "text", "name", "search", "queries", "symbol", "term", "keyword"),
        required=True,
    ),
    parameter("in", "string", "where", "scope", enum=["names", "text", "both"]),
    parameter("regex", "boolean", "is_regex", "use_regex", description="match case in text"),
    parameter(
        "kind",
        "array",
        "kinds",
        "type",
        "symbol_kind",
        description="class, function, method...",
    ),
    _GLOB,
    parameter(
        "limit",
        "integer",
        *("max_results", "head_limit", "max", "count", "top", "n", "page_size"),
        minimum=1,
        maximum=500,
        description="maximum of names, and of lines; default 20",
    ),
    function=f"{_MODULE}.search:search",
    example={"query": "parse_config"},
    budgets=(2_000, 8_000),
    is_always_loaded=True,
)
READ = _tool(
    "code_read",
    "Use instead of reading a whole file when you know the symbol: returns its current "
    "source with line numbers. symbols: Class/method, file:name, name[1] for the "
    "second of a name; several at once. Or file with lines 10-20. A long class is "
    "returned as a list of its members. For a name that fits several symbols, returns "
    "the list of them.",
    parameter("symbols", "array", "symbol", "name", "names", "name_path", "query", "targets"),
    parameter("file", "string", *_FILE_NAMES),
    parameter("lines", "string", "range", "line_range", "line", description="10-20"),
    function=f"{_MODULE}.read:read",
    example={"symbols": ["Server/start"]},
    budgets=(4_000, 12_000),
    is_always_loaded=True,
)
REFERENCES = _tool(
    "code_references",
    "Use instead of grep to find who calls, reads, imports or extends a symbol: "
    "comments, strings and other languages are excluded. References are grouped by "
    "file and enclosing symbol, each with its certainty: same_file, same_package, "
    "imported and only_definition are exact; by_name (3) means that only the name "
    "matches, which 3 definitions share.",
    parameter(
        "name",
        "string",
        *("symbol", "query", "symbols", "name_path", "identifier", "function"),
        required=True,
        description="name, Class/method or file:name",
    ),
    parameter(
        "kind", "string", "kinds", "type", enum=["call", "type", "import", "inherit", "read", "all"]
    ),
    _GLOB,
    parameter("tests", "boolean", "include_tests", description="false excludes tests"),
    function=f"{_MODULE}.references:references",
    example={"name": "Server/start"},
    budgets=(2_000, 8_000),
    is_always_loaded=True,
)
OUTLINE = _tool(
    "code_outline",
    "Use before reading an unknown file or folder: returns its symbols as a tree with "
    "lines and signatures; for a folder, its files with their top-level symbols.",
    parameter("file", "string", *_FILE_NAMES, "target", description="file or folder"),
    parameter("depth", "integer", "max_depth", "level", minimum=1, maximum=99),
    function=f"{_MODULE}.outline:outline",
    example={"file": "src"},
    budgets=(1_500, 6_000),
)
MAP = _tool(
    "code_map",
    "Use first in an unknown tree, instead of listing folders: returns the files used "
    "most by the rest, with their most used signatures.",
    parameter(
        "focus",
        "array",
        *("focus_files", "files", "file", "query", "names", "symbols"),
        description="paths or names of interest",
    ),
    function=f"{_MODULE}.map:code_map",
    example={"focus": ["src/app.py"]},
    budgets=(1_500, 6_000),
)
_JOB = parameter("job_id", "string", "id", "job", "build_id", "jobId")


def _wait(default: int) -> ToolParameter:
    return parameter(
        "wait_seconds",
        "integer",
        *("wait", "timeout", "timeout_seconds"),
        minimum=0,
        maximum=30,
        description=f"seconds to wait for its end; {default}",
    )


_PATHS = parameter("paths", "array", "files", description="build only these files and folders")
BUILD = _tool(
    "code_index_build",
    "Index a tree, or update its index. Rarely needed, because questions do so "
    "automatically. Returns a job immediately, or the one already running.",
    _wait(0),
    _PATHS,
    parameter("force", "boolean", "rebuild", "full", description="parse unchanged files too"),
    function=f"{_MODULE}.builds:build",
    example={"wait_seconds": 10},
    budgets=(300, 600),
    is_read_only=False,
    cursor=False,
)
STATUS = _tool(
    "code_index_status",
    "Get the state of the index and the progress of its build: job, symbols, files by "
    "outcome, failed files.",
    _JOB,
    function=f"{_MODULE}.builds:status",
    budgets=(600, 2_000),
    cursor=False,
)
UPDATE = _tool(
    "code_index_update",
    "Update the index and wait for the result.",
    _wait(10),
    _PATHS,
    function=f"{_MODULE}.builds:update",
    budgets=(300, 600),
    is_read_only=False,
    is_listed=False,
    cursor=False,
)

TOOLS = ToolSet(
    name="code",
    tools=(SEARCH, READ, REFERENCES, OUTLINE, MAP, BUILD, STATUS, UPDATE),
    instructions=_INSTRUCTIONS,
    warm_up=(f"{_MODULE}.indexes:catch_up",),
    makers={"code": f"{_MODULE}.job_indexes:JobIndexes.of"},
)
