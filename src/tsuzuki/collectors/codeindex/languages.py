"""The languages: which file is which, and where its grammar is.

A file is known by its name, then by its suffix, then by its `#!` line.
"""

import re
from dataclasses import dataclass
from pathlib import PurePosixPath

_VERSION = re.compile(r"[\d.]+$")
_CPLUSPLUS = re.compile(
    rb"^\s*(?:class|namespace|template|using|public:|private:|protected:)\b|\b\w+::\w", re.MULTILINE
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Language:
    name: str
    module: str
    """The wheel's module with the grammar."""
    suffixes: tuple[str, ...]
    function: str = "language"
    names: tuple[str, ...] = ()
    interpreters: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()
    """The files of the tags query, joined; the language's own name if empty."""
    all_reads: bool = False
    """True where no local variable is taken for a read of a definition."""
    has_identifiers: bool = True
    """False where names are no words of their own in the text: only what the tags query captures is a use."""
    comment: str = ""
    """How a comment before a definition looks: `slash`, `hash`, `dash`, `markup` or none."""


_TABLE = (
    Language(
        name="python",
        module="tree_sitter_python",
        suffixes=(".py", ".pyi", ".pyw"),
        names=("SConstruct", "SConscript", "wscript"),
        interpreters=("python", "pypy"),
        comment="hash",
    ),
    Language(
        name="javascript",
        module="tree_sitter_javascript",
        suffixes=(".js", ".mjs", ".cjs", ".jsx"),
        interpreters=("node", "nodejs", "bun"),
        tags=("javascript", "javascript_class", "jsx"),
        comment="slash",
    ),
    Language(
        name="typescript",
        module="tree_sitter_typescript",
        function="language_typescript",
        suffixes=(".ts", ".mts", ".cts"),
        interpreters=("ts-node", "deno", "tsx"),
        tags=("javascript", "typescript"),
        comment="slash",
    ),
    Language(
        name="tsx",
        module="tree_sitter_typescript",
        function="language_tsx",
        suffixes=(".tsx",),
        tags=("javascript", "typescript", "jsx"),
        comment="slash",
    ),
    Language(name="go", module="tree_sitter_go", suffixes=(".go",), comment="slash"),
    Language(name="rust", module="tree_sitter_rust", suffixes=(".rs",), comment="slash"),
    Language(name="java", module="tree_sitter_java", suffixes=(".java",), comment="slash"),
    Language(name="c", module="tree_sitter_c", suffixes=(".c", ".h"), comment="slash"),
    Language(
        name="cpp",
        module="tree_sitter_cpp",
        suffixes=(".cpp", ".cc", ".cxx", ".c++", ".hpp", ".hh", ".hxx", ".h++", ".ipp", ".inl"),
        tags=("c", "cpp"),
        comment="slash",
    ),
    Language(
        name="csharp", module="tree_sitter_c_sharp", suffixes=(".cs", ".csx"), comment="slash"
    ),
    Language(
        name="ruby",
        module="tree_sitter_ruby",
        suffixes=(".rb", ".rake", ".gemspec", ".ru"),
        names=("Rakefile", "Gemfile", "Guardfile", "Vagrantfile"),
        interpreters=("ruby", "jruby"),
        comment="hash",
    ),
    Language(
        name="php",
        module="tree_sitter_php",
        function="language_php",
        suffixes=(".php", ".phtml", ".php5", ".inc"),
        interpreters=("php",),
        comment="slash",
    ),
    Language(name="kotlin", module="tree_sitter_kotlin", suffixes=(".kt", ".kts"), comment="slash"),
    Language(
        name="swift",
        module="tree_sitter_swift",
        suffixes=(".swift",),
        interpreters=("swift",),
        comment="slash",
    ),
    Language(
        name="scala",
        module="tree_sitter_scala",
        suffixes=(".scala", ".sc", ".sbt"),
        comment="slash",
    ),
    Language(
        name="lua",
        module="tree_sitter_lua",
        suffixes=(".lua",),
        interpreters=("lua", "luajit"),
        comment="dash",
    ),
    Language(
        name="bash",
        module="tree_sitter_bash",
        has_identifiers=False,
        all_reads=True,
        suffixes=(".sh", ".bash", ".bats", ".ksh"),
        names=(".bashrc", ".bash_profile", ".profile", "PKGBUILD"),
        interpreters=("sh", "bash", "dash", "ksh", "zsh"),
        comment="hash",
    ),
    Language(
        name="sql",
        module="tree_sitter_sql",
        has_identifiers=False,
        all_reads=True,
        suffixes=(".sql", ".ddl"),
        comment="dash",
    ),
    Language(
        name="html",
        module="tree_sitter_html",
        has_identifiers=False,
        all_reads=True,
        suffixes=(".html", ".htm", ".xhtml"),
        comment="markup",
    ),
    Language(
        name="css",
        module="tree_sitter_css",
        has_identifiers=False,
        all_reads=True,
        suffixes=(".css",),
        comment="slash",
    ),
    Language(
        name="markdown",
        module="tree_sitter_markdown",
        has_identifiers=False,
        suffixes=(".md", ".markdown", ".mdx"),
    ),
    Language(
        name="json",
        module="tree_sitter_json",
        has_identifiers=False,
        suffixes=(".json", ".jsonc", ".webmanifest"),
        names=(".babelrc", ".eslintrc", "composer.lock"),
    ),
    Language(
        name="yaml",
        module="tree_sitter_yaml",
        has_identifiers=False,
        all_reads=True,
        suffixes=(".yaml", ".yml"),
        names=(".clang-format", ".clang-tidy"),
        comment="hash",
    ),
    Language(
        name="toml",
        module="tree_sitter_toml",
        has_identifiers=False,
        suffixes=(".toml",),
        names=("Pipfile", "Cargo.lock", "poetry.lock", "uv.lock"),
        comment="hash",
    ),
)

LANGUAGES: dict[str, Language] = {language.name: language for language in _TABLE}
_BY_NAME = {name.lower(): language.name for language in _TABLE for name in language.names}
_BY_SUFFIX = {suffix: language.name for language in _TABLE for suffix in language.suffixes}
_BY_INTERPRETER = {name: language.name for language in _TABLE for name in language.interpreters}


def language_of(path: str, first_bytes: bytes) -> str | None:
    """The language of a file, or none. `first_bytes` are enough of its start to tell C from C++."""
    name = path.rpartition("/")[2].lower()
    stem, dot, end = name.rpartition(".")
    found = _BY_NAME.get(name) or (_BY_SUFFIX.get(dot + end) if stem else None)
    if found == "c" and name.endswith(".h") and _CPLUSPLUS.search(first_bytes):
        return "cpp"
    return found or _by_shebang(first_bytes)


def _by_shebang(first_bytes: bytes) -> str | None:
    if not first_bytes.startswith(b"#!"):
        return None
    words = first_bytes.partition(b"\n")[0][2:].decode("utf-8", "replace").split()
    programs = [PurePosixPath(word).name for word in words if word[0] != "-" and "=" not in word]
    if programs[:1] == ["env"]:
        programs = programs[1:]
    return _BY_INTERPRETER.get(_VERSION.sub("", programs[0])) if programs else None
