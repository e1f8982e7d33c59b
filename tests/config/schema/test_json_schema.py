"""The schema for editors accepts what we accept, and marks what a person mistypes."""

import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft7Validator
from ruamel.yaml import YAML

from tsuzuki.cli.demo.demo import demo_parts
from tsuzuki.cli.demo.workspace import DemoWorkspace
from tsuzuki.config.schema.job_kinds import JobKind
from tsuzuki.config.schema.json_schema import json_schema
from tsuzuki.config.starter_file import starter_text
from tsuzuki.model.clock import SystemClock
from tsuzuki.model.errors import ConfigurationError
from tsuzuki.wiring.collectors import installed_collectors

ROOT = Path(__file__).parents[3]
OTHER_FILES = ("lsp:", "people:")
"""First keys of examples of other files than tsuzuki.yaml."""


@cache
def validator() -> Draft7Validator:
    schema = json_schema(installed_collectors().kinds)
    Draft7Validator.check_schema(schema)
    return Draft7Validator(schema)


def problems(text: str) -> list[str]:
    data: Any = YAML(typ="safe").load(text)
    return [f"{list(error.path)}: {error.message}" for error in validator().iter_errors(data)]


def documented_files() -> list[Any]:
    found = [
        pytest.param(path.read_text(), id=path.parent.name + "/" + path.name)
        for path in sorted((ROOT / "examples").rglob("*.yaml"))
    ]
    for page in sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")]):
        blocks = re.findall(r"```yaml\n(.*?)```", page.read_text(), re.DOTALL)
        found += [
            pytest.param(block, id=f"{page.stem}-{number}")
            for number, block in enumerate(blocks)
            if not re.search(rf"^({'|'.join(OTHER_FILES)})", block, re.MULTILINE)
        ]
    return found


@pytest.mark.parametrize("text", documented_files())
def test_what_is_documented_is_accepted(text: str) -> None:
    assert problems(text) == []


def test_the_starter_with_all_its_examples_is_accepted() -> None:
    head, jobs = starter_text({}).split("jobs:\n")
    uncommented = re.sub(r"(?m)^  # (?=[a-z]+:|  )", "  ", jobs)
    assert problems(f"{head}jobs:\n{uncommented}") == []


def test_the_file_of_the_demo_is_accepted(tmp_path: Path) -> None:
    ports = dict.fromkeys(("gitlab", "books", "mail", "feeds", "mastodon"), 8421)
    workspace = DemoWorkspace(tmp_path, parts=demo_parts().values(), clock=SystemClock())
    assert problems(workspace.file_text(ports)) == []


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("jobz: {}", "jobz"),
        ("jobs: {a: {command: x, timout: 5s}}", "timout"),
        ("jobs: {a: {type: book}}", "book"),
        ("jobs: {a: {type: books}}", "queries"),
        ("jobs: {a: {schedule: daily at 07:00}}", "not valid under any"),
        ("jobs: {a: {command: x, schedule: {evry: 1m}}}", "evry"),
        ("jobs: {a: {command: x, max_retries: many}}", "many"),
        ("jobs: {a: {python: 'm:f', queries: [x]}}", "queries"),
        ("books: {daily_limit: lots}", "lots"),
        ("commits: {gitlab: {tokn: x}}", "tokn"),
        ("webhooks: {hub: {kind: nothing, secret: x}}", "nothing"),
    ],
)
def test_a_mistake_is_marked(text: str, word: str) -> None:
    found = problems(text)
    assert found
    assert word in " ".join(found)


def test_a_value_of_a_section_may_be_a_variable_and_that_of_a_job_not() -> None:
    assert problems("books: {daily_limit: '${LIMIT:-100}'}") == []
    assert problems("jobs: {a: {command: x, max_retries: '${TRIES}'}}") != []


def test_a_refused_kind_may_have_any_keys() -> None:
    refused = JobKind.refused("weather", ConfigurationError("it is broken"))
    schema = Draft7Validator(json_schema({"weather": refused}))
    data = {"weather": {"key": 1}, "jobs": {"a": {"type": "weather", "towns": ["Oslo"]}}}
    assert list(schema.iter_errors(data)) == []
