"""Which file is in which language, and what is found in a file of each."""

import pytest

from collectors.codeindex.golden import FOLDER, found_in
from tsuzuki.collectors.codeindex.extract import LANGUAGES, language_of


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_the_golden_file_gives_what_stands_beside_it(language: str) -> None:
    assert found_in(language) == (FOLDER / f"{language}.expected").read_text(encoding="utf-8")


@pytest.mark.parametrize("language", sorted(LANGUAGES))
def test_no_name_comes_from_a_comment_or_a_string(language: str) -> None:
    found = found_in(language)
    assert "call_in_a" not in found
    assert "not_a_" not in found.replace("not_a_key: true", "").replace('not_a = "key"', "")


@pytest.mark.parametrize(
    ("path", "first_bytes", "language"),
    [
        ("a/b.py", b"", "python"),
        ("B.PY", b"", "python"),
        ("tool", b"#!/usr/bin/env python3\n", "python"),
        ("tool", b"#!/usr/bin/python3.11 -u\n", "python"),
        ("tool", b"#!/usr/bin/env -S node --x\n", "javascript"),
        ("tool", b"#! /bin/sh\n", "bash"),
        ("Rakefile", b"", "ruby"),
        ("x.h", b"struct a { int b; };\n", "c"),
        ("x.h", b"#pragma once\nnamespace a {\n", "cpp"),
        ("x.h", b"std::string name();\n", "cpp"),
        ("x.tsx", b"", "tsx"),
        (".bashrc", b"", "bash"),
        ("x.unknown", b"plain", None),
        ("x", b"", None),
        ("x", b"#!\n", None),
        ("x", b"#!/opt/own\n", None),
    ],
)
def test_a_file_is_known_by_name_then_suffix_then_interpreter(
    path: str, first_bytes: bytes, language: str | None
) -> None:
    assert language_of(path, first_bytes) == language
