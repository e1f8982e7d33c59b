"""The shape of the project: who imports whom, what is exported, what the documents promise."""

import ast
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

import tsuzuki
from tsuzuki.cli.root import ROOT

ROOT_FOLDER = Path(__file__).parents[2]
SOURCE = ROOT_FOLDER / "src" / "tsuzuki"
DOCUMENTS = [ROOT_FOLDER / "README.md", *sorted((ROOT_FOLDER / "docs" / "guide").glob("*.md"))]
BESIDE_THE_STANDARD_LIBRARY = {"tsuzuki", "cronsim"}


def imported_modules(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            found.add(node.module)
    return found


@pytest.mark.parametrize("path", sorted((SOURCE / "model").glob("*.py")), ids=lambda p: p.name)
def test_the_model_stands_on_the_standard_library_and_cronsim(path: Path) -> None:
    tops = {module.split(".")[0] for module in imported_modules(path)}
    assert tops - set(sys.stdlib_module_names) <= BESIDE_THE_STANDARD_LIBRARY
    assert all(m.startswith("tsuzuki.model") for m in imported_modules(path) if "tsuzuki" in m)


def test_every_module_says_what_it_promises() -> None:
    silent = [
        str(path.relative_to(ROOT_FOLDER))
        for path in SOURCE.rglob("*.py")
        if not ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert silent == []


def test_data_is_printed_through_the_module_that_knows_a_full_disk() -> None:
    direct = [
        f"{path.name}:{node.lineno}"
        for path in sorted((SOURCE / "cli").rglob("*.py"))
        if path.name != "output.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func) in ("click.echo", "click.secho", "print", "sys.stdout.write")
        and all(given.arg != "err" for given in node.keywords)
    ]
    assert direct == []


def test_every_exported_name_is_there() -> None:
    assert sorted(tsuzuki.__all__) == tsuzuki.__all__
    for name in tsuzuki.__all__:
        assert getattr(tsuzuki, name) is not None
    with pytest.raises(AttributeError):
        getattr(tsuzuki, "no_such_name")  # noqa: B009 -- the point is the look-up


def test_importing_the_package_loads_no_database() -> None:
    code = "import sys, tsuzuki.cli; sys.exit('sqlalchemy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def commands_in(document: Path) -> list[list[str]]:
    """Every `tsuzuki …` that stands in a code block or in backticks."""
    text = document.read_text(encoding="utf-8")
    blocks = re.findall(r"```sh\n(.*?)```", text, flags=re.DOTALL)
    lines = [part for block in blocks for line in block.splitlines() for part in line.split("&&")]
    lines += re.findall(r"`(tsuzuki [^`]+)`", text)
    commands = []
    for line in lines:
        if line.strip().startswith("tsuzuki "):
            commands.append(shlex.split(line, comments=True)[1:])
    return commands


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda p: p.name)
def test_every_command_a_document_names_exists_with_its_options(document: Path) -> None:
    for words in commands_in(document):
        command: click.Command = ROOT
        context = click.Context(ROOT, info_name="tsuzuki", **ROOT.context_settings)
        rest = list(words)
        while rest and isinstance(command, click.Group) and not rest[0].startswith("-"):
            found = command.get_command(context, rest[0])
            assert found is not None, f"{document.name}: no command {' '.join(words)}"
            context = click.Context(found, info_name=rest.pop(0), parent=context)
            command = found
        known = {opt for param in command.get_params(context) for opt in param.opts}
        options = rest[: rest.index("--")] if "--" in rest else rest
        unknown = {word for word in options if word.startswith("--")} - known
        assert not unknown, f"{document.name}: {' '.join(words)}"


def test_the_readme_is_short_and_names_its_two_commands_first() -> None:
    lines = (ROOT_FOLDER / "README.md").read_text(encoding="utf-8").splitlines()
    assert len(lines) < 120
    first = [line.split()[:2] for line in lines if line.startswith("make ")]
    assert first == [["make", "run"], ["make", "test"]]


def test_every_link_of_the_documents_leads_somewhere() -> None:
    documents = [*ROOT_FOLDER.glob("*.md"), *(ROOT_FOLDER / "docs").rglob("*.md")]
    for document in documents:
        for target in re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8")):
            assert (document.parent / target).exists(), f"{document.name}: {target}"


def test_the_locks_name_no_host_and_pin_every_package_with_a_hash() -> None:
    for lock in (ROOT_FOLDER / "requirements").rglob("*.txt"):
        text = lock.read_text(encoding="utf-8")
        assert "://" not in text
        pinned = re.findall(r"^[a-z0-9].*==.*$", text, flags=re.MULTILINE)
        assert pinned
        assert all(line.endswith("\\") for line in pinned), lock.name


def test_the_example_of_the_library_does_what_it_says() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT_FOLDER / "examples" / "library.py")],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.splitlines() == [
        "result: Count(words=3)",
        "asked twice, run once: True",
        "in my own transaction: 3",
    ]
    assert done.stderr == ""
