"""Language servers are named for a build, in a job or in the user's file; a mistake is said with its place."""

from pathlib import Path
from typing import Any

import pytest

from tsuzuki.collectors.codeindex.lsp.server_process import server_environment
from tsuzuki.collectors.codeindex.lsp.settings import (
    CONFIG_VARIABLE,
    ServerCommand,
    read_said,
    server_commands,
)
from tsuzuki.collectors.codeindex.options import CodeIndexOptions
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.config import InvalidFile
from tsuzuki.model.errors import TsuzukiError


def commands(text: str, folder: Path, **said: Any) -> dict[str, str]:
    path = folder / "codeindex.yaml"
    path.write_text(text)
    found = server_commands(said, {CONFIG_VARIABLE: str(path)})
    return {language: str(command) for language, command in found.items()}


def test_what_is_said_wins_over_the_users_file(tmp_path: Path) -> None:
    file = "lsp:\n  python: jedi-language-server\n  c: [clangd, --log=error]\n  go: gopls\n"
    said = read_said(["python=basedpyright-langserver --stdio", "go=none"])
    assert commands(file, tmp_path, **said) == {
        "python": "basedpyright-langserver --stdio",
        "c": "clangd --log=error",
    }


def test_without_a_file_there_is_no_server(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    assert server_commands({}, {}) == {}
    (tmp_path / "tsuzuki").mkdir()
    (tmp_path / "tsuzuki" / "codeindex.yaml").write_text("lsp: {go: gopls}\n")
    assert str(server_commands({}, {})["go"]) == "gopls"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("lsp:\n  pyhton: x\n", "unknown language 'pyhton'"),
        ("lps: {}\n", "unknown key `lps`"),
        ("lsp: 3\n", "`lsp` must be a mapping of languages to commands, not 3"),
        ("- 3\n", "the file must be a mapping"),
        ("lsp:\n  python: a | b\n", "does not run in a shell"),
    ],
)
def test_a_mistake_in_the_file_is_said_with_its_place(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(InvalidFile) as refused:
        commands(text, tmp_path)
    assert message in str(refused.value)
    assert "codeindex.yaml:" in str(refused.value.place)


@pytest.mark.parametrize(
    ("said", "code", "hint"),
    [
        ("python", "bad_lsp", "--lsp python="),
        ("pyhton=x", "unknown_language", 'Did you mean "python"?'),
        ("python=", "bad_lsp", "none"),
        ("python='x", "bad_lsp", None),
    ],
)
def test_a_mistake_in_an_option_is_said(said: str, code: str, hint: str | None) -> None:
    with pytest.raises(TsuzukiError) as refused:
        read_said([said])
    assert refused.value.specific_code == code
    assert (hint is None) or hint in str(refused.value.hint)


def test_a_build_is_not_started_with_a_wrong_file(tmp_path: Path, tree: Path) -> None:
    file = tmp_path / "codeindex.yaml"
    file.write_text("lsp: {nope: x}\n")
    builds = Builds(environ={CONFIG_VARIABLE: str(file)})
    for start in (builds.start, builds.start_detached):
        with pytest.raises(InvalidFile):
            start(tree)


def test_a_program_below_the_current_folder_is_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = tmp_path / "bin" / "server"
    program.parent.mkdir()
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    monkeypatch.chdir(tmp_path)

    def path_of(word: str) -> str | None:
        return ServerCommand(language="c", words=(word,)).program({"PATH": str(program.parent)})

    assert path_of("bin/server") is None
    assert path_of("./bin/server") is None
    assert path_of("server") == str(program)
    assert path_of(str(program)) == str(program)


def test_a_server_inherits_no_secrets() -> None:
    kept = {"PATH": "/bin", "HOME": "/root", "VIRTUAL_ENV": "/venv", "LANG": "C"}
    secrets = ["GITLAB_TOKEN", "TSUZUKI_DATABASE_URL", "SMTP_PASSWORD", "GEMINI_API_KEY"]
    assert server_environment({**kept, **dict.fromkeys(secrets, "x")}) == kept


def test_a_job_names_servers() -> None:
    options = CodeIndexOptions.model_validate({"roots": ["."], "lsp": {"python": "server --stdio"}})
    assert options.lsp == {"python": ["server", "--stdio"]}
