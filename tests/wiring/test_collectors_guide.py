"""The collector of docs/guide/collectors.md, installed from that page and run."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from support.workspace import Workspace

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "guide" / "collectors.md"
EXAMPLE = "examples/"
FILE = re.compile(r"^`([\w/.]+)`\n\n```\w+\n(.*?)^```", re.MULTILINE | re.DOTALL)


def install_from_guide(site: Path) -> None:
    """Write the files of the guide as `pip install` would leave them."""
    found = FILE.findall(GUIDE.read_text("utf-8"))
    files = {name: text for name, text in found if not name.startswith(EXAMPLE)}
    project = tomllib.loads(files.pop("pyproject.toml"))["project"]
    (group,) = project["entry-points"]
    entries = [f"{name} = {value}" for name, value in project["entry-points"][group].items()]
    information = f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    files[f"{information}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n"
    )
    files[f"{information}/entry_points.txt"] = "\n".join([f"[{group}]", *entries, ""])
    for name, text in files.items():
        path = site / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")


def test_the_collector_of_the_guide_collects_continues_and_lists(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site, folder = tmp_path / "site", tmp_path / "workspace"
    folder.mkdir()
    install_from_guide(site)
    workspace = Workspace(folder, capsys)

    def run(*words: str) -> Any:
        ended = workspace.forked(*words, "--output", "json", PYTHONPATH=str(site))
        assert ended.code == 0, ended.err
        return ended.data

    results = []
    for up_to in (5, 12):
        workspace.file.write_text(
            f"version: 1\ncounting: {{page_size: 4}}\n"
            f"jobs:\n  numbers: {{type: counting, up_to: {up_to}}}\n"
        )
        asked = run("job", "run", "numbers")
        run("run-due")
        results.append(run("run", "show", str(asked["run_id"]))["result"])
    assert results == [{"counted": 5}, {"counted": 7}]
    assert run("counting", "ls") == [{"number": number} for number in range(12)]


def test_the_excerpts_of_the_guide_are_parts_of_the_example() -> None:
    found = FILE.findall(GUIDE.read_text("utf-8"))
    excerpts = [(name, text) for name, text in found if name.startswith(EXAMPLE)]
    assert len(excerpts) >= 10
    for name, text in excerpts:
        assert text in (ROOT / name).read_text("utf-8"), name
