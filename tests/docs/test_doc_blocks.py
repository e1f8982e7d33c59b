"""Every command and every snippet of README, quickstart, guides and pages of operations does what it is there for.

A document is executed from its first block to its last, in a folder of its own, against the sandbox. A YAML block is
the workspace's `tsuzuki.yaml` from there on.
"""

import json
import re
import shlex
import sqlite3
import subprocess
import tomllib
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import click
import pytest

from support.doc_sites import DocSite
from support.documents import BLOCK, REPOSITORY, Block, Shell, blocks_of, parse

GUIDE = REPOSITORY / "docs" / "guide"
EXECUTED = [
    REPOSITORY / "docs" / "quickstart.md",
    REPOSITORY / "README.md",
    *sorted(path for path in GUIDE.glob("*.md") if path.name != "sandbox.md"),
    *sorted((REPOSITORY / "docs" / "ops").glob("*.md")),
    *sorted((REPOSITORY / "examples").glob("*/README.md")),
    GUIDE / "sandbox.md",  # the last one: it lets the sandbox fail
]
DOCUMENTS = [*REPOSITORY.glob("*.md"), *sorted((REPOSITORY / "docs").rglob("*.md"))]
EXECUTED_ELSEWHERE = {
    ("collectors.md", "python"): "tests/wiring/test_collectors_guide.py",
    ("mcp.md", "json"): "tests/mcp/test_guide.py",
    ("mcp.md", "toml"): "tests/mcp/test_guide.py",
}
COMMAND = re.compile(
    r"^(?:[^\n#]*/bin/tsuzuki|docker compose [^\n]* run --rm [a-z]+|tsuzuki) ([^\n|>&]*)",
    re.MULTILINE,
)
"""A command of ours, also by its path or in a container."""
SHOWN_ONLY = {"html", "markdown", "text"}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DocSite]:
    with pytest.MonkeyPatch.context() as patch:
        made = DocSite(tmp_path_factory.mktemp("documents"))
        patch.setenv("HOME", str(made.home))
        patch.delenv("XDG_CACHE_HOME", raising=False)
        patch.delenv("XDG_CONFIG_HOME", raising=False)
        try:
            yield made
        finally:
            made.close()


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_what_the_documents_show_works(site: DocSite, monkeypatch: pytest.MonkeyPatch) -> None:
    """One test for all of them: they share the sandbox and an engine."""
    failures = []
    for document in EXECUTED:
        try:
            execute(document, site.shell_for(document), monkeypatch)
        except (AssertionError, pytest.fail.Exception) as failure:
            failures.append(str(failure))
    assert failures == [], "\n\n".join(failures)


def execute(document: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shell.cwd)
    for block in blocks_of(document):
        if block.is_run and (document.name, block.language) not in EXECUTED_ELSEWHERE:
            EXECUTORS[block.language](block, shell)


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(REPOSITORY)))
def test_what_a_document_shows_can_be_read(document: Path) -> None:
    for block in blocks_of(document):
        assert block.language in EXECUTORS, f"{block.place}: {block.language}"
        if block.language == "sh":
            checked = subprocess.run(
                ["sh", "-n"], input=block.text, text=True, check=False, capture_output=True
            )
            assert checked.returncode == 0 or "* * *" in block.text, (
                f"{block.place}: {checked.stderr}"
            )
            for line in COMMAND.findall(block.text):
                with_known_options(shlex.split(line, comments=True), block)


def test_the_readme_in_japanese_has_the_sections_and_commands_of_the_english_one() -> None:
    english, japanese = (REPOSITORY / name for name in ("README.md", "README.ja.md"))
    assert len(japanese.read_text("utf-8").splitlines()) < 120
    assert after_the_start(english) == after_the_start(japanese)


def after_the_start(document: Path) -> list[list[list[str]]]:
    """Of each section but the first: the words of its commands and the code of its snippets, without comments."""
    _start, *sections = document.read_text(encoding="utf-8").split("\n## ")
    return [
        [
            shlex.split(line, comments=True)
            for found in BLOCK.finditer(section)
            for line in found["text"].splitlines()
        ]
        for section in sections
    ]


def with_known_options(words: list[str], block: Block) -> None:
    try:
        parse(words)
    except click.NoSuchOption as problem:
        pytest.fail(f"{block.place}: {problem.format_message()}")
    except (click.ClickException, click.exceptions.Exit):
        pass  # a value that is filled in only when it is run


def run_yaml(block: Block, shell: Shell) -> None:
    """Check the block as a workspace's file, which it is from now on; or as the file that its first line names."""
    named = re.match(r"# ([\w-]+\.yaml)\n", block.text)
    name = named[1] if named else "tsuzuki.yaml"
    is_file_of_jobs = name == "tsuzuki.yaml"
    head = "" if "version:" in block.text or not is_file_of_jobs else "version: 1\n"
    folder = shell.cwd if shell.has_file_of_its_own else shell.cwd / "checked"
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(head + shell.filled_in(block.text), encoding="utf-8")
    if name == "codeindex.yaml":
        shell.environ["TSUZUKI_CODEINDEX_CONFIG"] = str(folder / name)
    else:
        file = folder / "tsuzuki.yaml"
        shell.execute(block.with_command(f"tsuzuki --config {file} config check"))


def run_python(block: Block, shell: Shell) -> None:
    exec(compile(block.text, block.place, "exec"), {"__name__": "__main__"})


def run_sql(block: Block, shell: Shell) -> None:
    with closing(sqlite3.connect(shell.cwd / "tsuzuki.db")) as connection:
        for statement in block.text.split(";"):
            connection.execute(statement).fetchall()


def read_json(block: Block, shell: Shell) -> None:
    json.loads(block.text)


def read_toml(block: Block, shell: Shell) -> None:
    tomllib.loads(block.text)


EXECUTORS: dict[str, Callable[[Block, Shell], None]] = {
    "sh": lambda block, shell: shell.execute(block),
    "yaml": run_yaml,
    "python": run_python,
    "sql": run_sql,
    "json": read_json,
    "toml": read_toml,
    **{language: lambda block, shell: None for language in SHOWN_ONLY},
}
