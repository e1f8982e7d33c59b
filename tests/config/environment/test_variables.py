"""Variables, and the files that variables name."""

from pathlib import Path

import pytest

from tsuzuki.config import Configuration, load_configuration
from tsuzuki.config.environment.variables import ConfiguredValue, read_variable
from tsuzuki.model.errors import ConfigurationError


def load(cwd: Path, environ: dict[str, str]) -> Configuration:
    return load_configuration(environ=environ, cwd=cwd)


@pytest.mark.parametrize("name", ["DATABASE", "REDIS"])
def test_a_secret_may_come_from_a_file_that_a_variable_names(tmp_path: Path, name: str) -> None:
    urls = {"DATABASE": "postgresql+psycopg://me:secret@host/db", "REDIS": "redis://:secret@host"}
    (tmp_path / "secret").write_text(urls[name] + "\n")
    found = load(tmp_path, {f"TSUZUKI_{name}_URL_FILE": "secret"})
    assert getattr(found, f"{name.lower()}_url") == urls[name]


def test_a_variable_given_both_ways_is_refused(tmp_path: Path) -> None:
    environ = {"TSUZUKI_REDIS_URL": "redis://a", "TSUZUKI_REDIS_URL_FILE": "secret"}
    with pytest.raises(ConfigurationError, match="both set"):
        load(tmp_path, environ)


@pytest.mark.parametrize("content", [None, b"", b" \n", b"\xff\xfe"])
def test_a_secret_file_without_a_secret_is_refused_by_name(
    tmp_path: Path, content: bytes | None
) -> None:
    if content is not None:
        (tmp_path / "secret").write_bytes(content)
    with pytest.raises(ConfigurationError, match="TSUZUKI_DATABASE_URL_FILE"):
        load(tmp_path, {"TSUZUKI_DATABASE_URL_FILE": "secret"})


def test_a_value_is_named_by_the_variable_that_gave_it(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("hidden\n")
    environ = {"DIRECT": "open", "BY_FILE": "", "BY_FILE_FILE": "secret"}
    assert read_variable("DIRECT", environ, cwd=tmp_path) == ConfiguredValue(
        text="open", name="DIRECT"
    )
    assert read_variable("BY_FILE", environ, cwd=tmp_path) == ConfiguredValue(
        text="hidden", name="BY_FILE_FILE"
    )
    assert read_variable("NEITHER", environ, cwd=tmp_path) is None
