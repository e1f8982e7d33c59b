"""Emitted text: any YAML parser reads back the value, and no line is too long."""

from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from config.commented_file import FILE, data
from tsuzuki.config.edit import ConfigEditor
from tsuzuki.config.yaml.emitter import emit_flow

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**18), 10**18) | st.text(max_size=20)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=12,
)  # fmt: skip


@settings(
    max_examples=50,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(value=JSON)
def test_every_value_is_printed_so_that_any_reader_reads_it_back(
    tmp_path: Path, value: Any
) -> None:
    arguments = {"value": value}
    text = f"a: {emit_flow(arguments)}\n"
    assert YAML(typ="safe", pure=True).load(text) == {"a": arguments}
    path = tmp_path / "tsuzuki.yaml"
    path.write_text("jobs:\n")
    assert (
        ConfigEditor(path).add_job("it", {"command": "x", "arguments": arguments}).arguments
        == arguments
    )


def test_long_values_are_set_out_over_several_lines(tmp_path: Path) -> None:
    path = tmp_path / "tsuzuki.yaml"
    path.write_text(FILE)
    arguments = {"recipients": [f"person-{n}@example.com" for n in range(6)], "subject": "News"}
    ConfigEditor(path).add_job("mail", {"command": "mail", "arguments": arguments})
    assert data(path)["jobs"]["mail"]["arguments"] == arguments
    assert max(map(len, path.read_text().splitlines())) <= 100
    assert "    arguments:\n      recipients:\n        - person-0@example.com\n" in path.read_text()
