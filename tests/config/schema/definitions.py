"""Read definitions, among them a kind of job with nested options, choices, and words of its own."""

import textwrap
from typing import Annotated, Literal

import pytest
from pydantic import BaseModel, ConfigDict, Field, field_validator

from tsuzuki.config import Expects, InvalidFile, JobKind
from tsuzuki.config.schema.config_file import ConfigFile, read_config_file
from tsuzuki.config.yaml.document import parse_document
from tsuzuki.config.yaml.source import YamlSource
from tsuzuki.model.job import JobSpec


class Query(BaseModel):
    model_config = ConfigDict(extra="forbid")

    text: str
    pages_max: int = Field(default=10, ge=1, le=40)


class BookOptions(BaseModel):
    model_config = ConfigDict(extra="forbid")

    query: Query
    language: Literal["en", "ja"] = "en"
    section: Annotated[str, Expects("the name of a section")] = "new"
    limit: int | float = 5

    @field_validator("section")
    @classmethod
    def _no_space(cls, section: str) -> str:
        if " " in section:
            raise ValueError("a section has no spaces")
        return section


KINDS = {"books": JobKind(name="books", options_model=BookOptions)}


def read(text: str) -> ConfigFile:
    """What `text`, as a file, says."""
    source = YamlSource(file="tsuzuki.yaml", text=textwrap.dedent(text))
    return read_config_file(parse_document(source), kinds=KINDS)


def job(text: str) -> JobSpec:
    """The specification of a job with this body."""
    (spec,) = read("jobs:\n  it:\n" + textwrap.indent(textwrap.dedent(text), "    ")).jobs
    return spec


def faults(text: str) -> list[str]:
    """Place and message of every problem of the file."""
    with pytest.raises(InvalidFile) as caught:
        read(text)
    return [f"{problem.place}: {problem.message}" for problem in caught.value.problems]
