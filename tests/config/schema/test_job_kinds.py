"""The kind of a job, and the keys that only this kind has."""

import pytest
from pydantic import BaseModel

from config.schema.definitions import job
from tsuzuki.config import JobKind


@pytest.mark.parametrize("kind", ["", "type: python\n"])
def test_a_python_job_names_its_function(kind: str) -> None:
    spec = job(f'{kind}python: "package.module:Class.method"')
    assert spec.handler == "python"
    assert spec.options == {"function": "package.module:Class.method"}


def test_the_kind_of_a_command_may_be_spelt_out() -> None:
    assert job("type: command\ncommand: x").options["argv"] == ["x"]


def test_a_kind_handed_in_reads_its_own_keys() -> None:
    spec = job("type: books\nquery: {text: sea}\nlanguage: ja\ntimeout: 5m")
    assert spec.handler == "books"
    assert spec.options == {
        "query": {"text": "sea", "pages_max": 10},
        "language": "ja",
        "section": "new",
        "limit": 5,
    }
    assert spec.timeout_seconds == 300


def test_a_kind_cannot_take_a_key_that_every_job_has() -> None:
    class Greedy(BaseModel):
        schedule: str

    with pytest.raises(ValueError, match="schedule"):
        JobKind(name="greedy", options_model=Greedy)
