"""Hard files: encodings, deadlines, depth, length. Every place that is reported is where the name stands."""

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tsuzuki.collectors.codeindex.extract import (
    LANGUAGES,
    Extracted,
    ExtractionFailed,
    SymbolKind,
    as_utf8,
    extract,
    grammar,
)
from tsuzuki.model.clock import SystemClock

JAPANESE = "# 表示する\nclass 表:\n    def 計算(self): return 関数(self, '表')\n"


def names(extracted: Extracted) -> list[str]:
    return [definition.name for definition in extracted.definitions]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "cp932", "euc_jp", "utf-16"])
def test_a_japanese_file_gives_the_same_in_each_encoding(encoding: str) -> None:
    found = extract("python", JAPANESE.encode(encoding), seconds_max=5)
    assert found == extract("python", JAPANESE.encode(), seconds_max=5)
    assert names(found) == ["表", "計算"]
    assert [(r.name, r.line, r.column) for r in found.references] == [("関数", 3, 25)]


def test_a_declared_encoding_comes_first() -> None:
    source = "# -*- coding: latin-1 -*-\ndef gr\xfc\xdfe(): pass\n".encode("latin-1")
    assert names(extract("python", source, seconds_max=5)) == ["gr\xfc\xdfe"]


@pytest.mark.parametrize("declared", ["rot13", "no-such-thing", "utf-8"])
def test_a_declaration_that_cannot_be_true_is_passed_over(declared: str) -> None:
    source = f"# coding: {declared}\ndef f(): pass # ".encode() + b"\xff\xfe\x80\n"
    assert names(extract("python", source, seconds_max=5)) == ["f"]


def test_bytes_in_no_encoding_cost_only_themselves() -> None:
    assert names(extract("python", b"def a(): '\xff\xa0\xe9'\ndef b(): pass\n", seconds_max=5)) == [
        "a",
        "b",
    ]


def test_a_binary_file_is_refused_with_its_reason() -> None:
    with pytest.raises(ExtractionFailed, match="NUL") as failed:
        extract("python", b"def a(): pass\0", seconds_max=5)
    assert failed.value.reason == "binary"


def test_an_unknown_language_is_refused() -> None:
    with pytest.raises(ExtractionFailed, match="cobol"):
        extract("cobol", b"", seconds_max=5)


class Late(SystemClock):
    """A clock by which each look takes a second."""

    seconds = 0.0

    def monotonic(self) -> float:
        self.seconds += 1
        return self.seconds


def test_a_parse_ends_at_its_deadline() -> None:
    source = b"x = [" + b"[1, 2],\n" * 100_000
    with pytest.raises(ExtractionFailed) as failed:
        extract("python", source, seconds_max=3, clock=Late())
    assert failed.value.reason == "too slow"


def test_one_line_of_fifty_megabytes_ends_at_the_deadline() -> None:
    with pytest.raises(ExtractionFailed, match=r"within 0\.2 seconds"):
        extract("javascript", b"x=1;" * (50 * 1024 * 1024 // 4), seconds_max=0.2)


@pytest.mark.parametrize("opening", [b"(", b"[", b"{", b"if x:\n ", b"f(", b"a.b("])
def test_deep_nesting_ends_well(opening: bytes) -> None:
    found = extract("python", b"def before(): pass\nx = " + opening * 20_000, seconds_max=20)
    assert found.had_errors


@pytest.mark.parametrize(
    ("language", "unit"),
    [("python", "表(値);"), ("javascript", "表(値);"), ("go", "var 表 表;"), ("ruby", "a.表;")],
)
def test_one_long_line_gives_each_column_in_linear_time(language: str, unit: str) -> None:
    source = unit * 6_000
    found = extract(language, source.encode(), seconds_max=60)
    assert len(found.references) >= 6_000
    for reference in found.references[-3:]:
        assert source[reference.column :].startswith(reference.name)


def test_an_empty_file_has_nothing() -> None:
    for language in LANGUAGES:
        found = extract(language, b"", seconds_max=5)
        assert (found.definitions, found.references) == ([], [])


def test_a_signature_and_a_doc_are_one_short_line() -> None:
    parameters = ", ".join(f"parameter_{n}: int" for n in range(100))
    source = f'def f({parameters}):\n    """{"word " * 100}\n    second"""\n'
    (found,) = extract("python", source.encode(), seconds_max=5).definitions
    assert 290 < len(found.signature) <= 300
    assert len(found.doc) <= 200
    assert "\n" not in found.signature + found.doc


def test_keys_deep_in_data_and_repeated_in_lists_are_left_out() -> None:
    source = b'{"a": [{"id": 1}, {"id": 2}], "b": {"c": {"d": {"e": {"f": {"g": 1}}}}}}'
    found = extract("json", source, seconds_max=5)
    assert [
        d.name for d in found.definitions if d.kind is SymbolKind.KEY
    ] == "a id b c d e f".split()


PIECES = [
    *("def f():", "class 表(A):", "\n", "    ", "x = 1", "(", ")", '"""', "'", "#", "\\", "\r\n"),
    *("lambda: g()", "import a.b", "@d", "é", "😀", "f(x)", ":", "{", "}", ";", "\t"),
]
FRAGMENTS = st.lists(st.sampled_from(PIECES), max_size=40).map("".join)


@settings(max_examples=200, suppress_health_check=[HealthCheck.too_slow])
@given(source=FRAGMENTS, language=st.sampled_from(["python", "javascript", "cpp", "ruby", "css"]))
def test_each_place_is_where_the_name_stands(source: str, language: str) -> None:
    found = extract(language, source.encode(), seconds_max=5)
    lines = source.split("\n")
    for reference in found.references:
        assert lines[reference.line - 1][reference.column :].startswith(reference.name)
    for definition in found.definitions:
        assert 1 <= definition.line <= definition.end_line <= len(lines)


@settings(max_examples=200)
@given(source=st.binary(max_size=300))
def test_any_bytes_become_text_with_the_same_lines(source: bytes) -> None:
    try:
        text = as_utf8(source)
    except ExtractionFailed:
        assert b"\0" in source
        return
    text.decode()
    if not source.startswith((b"\xff\xfe", b"\xfe\xff")):
        assert text.count(b"\n") == source.count(b"\n")


@pytest.mark.parametrize(
    ("language", "unit"),
    [
        ("ruby", b"require 'json'\nattr_reader :a\ndef f; g(1); end\n"),
        ("go", b"func f(a int) Cart { return g(a) }\n"),
        ("css", b".a { --b: 1; color: var(--b) }\n"),
    ],
)
def test_a_text_read_in_parts_gives_what_one_piece_gives(
    language: str, unit: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The predicates of the queries read the text too."""
    source = unit * 600
    whole = extract(language, source, seconds_max=60)
    monkeypatch.setattr(grammar, "UNCHECKED_BYTES_MAX", 0)
    assert extract(language, source, seconds_max=60) == whole
    assert whole.definitions


def test_threads_do_not_share_a_parse() -> None:
    """A long parse calls back into Python, where another thread may start its own."""
    sources = [f"def f{n}(): return g{n}(1)\n".encode() * 6_000 for n in range(8)]
    alone = [extract("python", source, seconds_max=60) for source in sources]
    with ThreadPoolExecutor(8) as pool:
        together = list(pool.map(lambda source: extract("python", source, seconds_max=60), sources))
    assert together == alone


@pytest.mark.parametrize(
    ("language", "source", "expected"),
    [
        ("ruby", "class A\n  attr_reader 'b', :c\n  alias_method \"d\", :e\nend\n", "A b c d"),
        ("javascript", "x = { g: function*() {} }\nx.h = function*() {}\n", "g h"),
        ("php", '<?php define("A", 1); $b = function() {}; $c = fn() => 1; $d = 2;', "A b c d"),
        ("php", "<?php function f() { $local = 3; }", "f"),
        ("bash", "alias ll='ls -l' la=ls\nalias -g G=x\nalias -p\n", "ll la G"),
        ("cpp", "struct A { operator int() const { return 1; } };", "A operator int"),
        ("cpp", "struct A { void operator()(int a) {} };", "A operator()"),
    ],
)
def test_less_common_definitions_are_found(language: str, source: str, expected: str) -> None:
    assert " ".join(names(extract(language, source.encode(), seconds_max=5))) == expected
