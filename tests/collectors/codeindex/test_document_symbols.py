"""An answer to `textDocument/documentSymbol` becomes definitions: nested or flat, in any unit of columns."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tsuzuki.collectors.codeindex.extract import SymbolRow, extract
from tsuzuki.collectors.codeindex.lsp.document_symbols import (
    InvalidAnswer,
    Parsed,
    as_symbols,
    column_of,
)


def span(line: int, start: int, end_line: int | None = None, end: int | None = None) -> Any:
    return {
        "start": {"line": line, "character": start},
        "end": {
            "line": line if end_line is None else end_line,
            "character": start if end is None else end,
        },
    }


def symbol(name: str, kind: int, whole: Any, named: Any, *children: Any) -> dict[str, Any]:
    return {
        "name": name,
        "kind": kind,
        "range": whole,
        "selectionRange": named,
        "children": [*children],
    }


def parsed(language: str, text: str) -> Parsed:
    found = extract(language, text.encode(), seconds_max=5)
    return Parsed(
        language,
        text.split("\n"),
        [(row[0], row[1].value, *row[2:]) for row in found.definitions],
        [(row[0], row[1].value, *row[2:]) for row in found.references],
    )


def found(
    answer: Any, language: str = "python", text: str = "", encoding: str = "utf-16"
) -> list[SymbolRow]:
    return [*as_symbols(answer, parsed(language, text), encoding=encoding)]


CART = 'class Cart:\n    """Things."""\n    def add(self, item):\n        self.sum = item\n'


def test_nested_symbols_have_their_containers_and_what_the_parser_knows() -> None:
    answer = [
        symbol(
            "Cart",
            5,
            span(0, 0, 3, 23),
            span(0, 6),
            symbol(
                "add",
                6,
                span(2, 4, 3, 23),
                span(2, 8),
                symbol("item", 13, span(2, 18), span(2, 18)),
            ),
            symbol("sum", 13, span(3, 13), span(3, 13)),
        )
    ]
    assert found(answer, text=CART) == [
        ("Cart", "class", "", 1, 4, 6, "class Cart", "Things."),
        ("add", "method", "Cart", 3, 4, 8, "def add(self, item)", ""),
        ("sum", "field", "Cart", 4, 4, 13, "self.sum = item", ""),
    ]


def test_a_flat_answer_is_nested_by_its_ranges() -> None:
    def flat(name: str, kind: int, whole: Any) -> dict[str, Any]:
        return {"name": name, "kind": kind, "location": {"uri": "file:///x", "range": whole}}

    answer = [
        {**flat("lone", 12, span(4, 0)), "containerName": "Elsewhere"},
        flat("add", 6, span(2, 4, 3, 23)),
        flat("Cart", 5, span(0, 0, 3, 23)),
    ]
    rows = found(answer, text=CART + "lone")
    assert [row[:6] for row in rows] == [
        ("Cart", "class", "", 1, 4, 6),
        ("add", "method", "Cart", 3, 4, 8),
        ("lone", "function", "Elsewhere", 5, 5, 0),
    ]


@pytest.mark.parametrize(("encoding", "units"), [("utf-8", 10), ("utf-16", 7), ("utf-32", 6)])
def test_columns_are_characters_whatever_the_server_counts(encoding: str, units: int) -> None:
    answer = [symbol("x", 13, span(0, units), span(0, units))]
    assert found(answer, text="'é😀'; x = 1", encoding=encoding)[0][5] == 6


@given(st.text(alphabet="aé😀", max_size=12), st.integers(0, 12))
def test_a_column_is_found_again(line: str, column: int) -> None:
    column = min(column, len(line))
    for encoding, codec, width in (("utf-8", "utf-8", 1), ("utf-16", "utf-16-le", 2)):
        units = len(line[:column].encode(codec)) // width
        assert column_of(line, units, encoding) == column
        assert column_of(line, 999, encoding) == len(line)


def test_imports_and_type_parameters_are_no_definitions() -> None:
    answer = [
        symbol("os", 2, span(0, 0, 0, 9), span(0, 7)),
        symbol("T", 26, span(1, 6), span(1, 6)),
        symbol("f", 12, span(1, 0, 1, 10), span(1, 4)),
    ]
    assert [row[0] for row in found(answer, text="import os\ndef f(): ...")] == ["f"]


def test_names_of_c_are_taken_apart_and_macros_are_kept() -> None:
    text = (
        "#define MAX 3\nclass Cart { Cart(); };\nint Cart::add(int a) { return a; }\nenum { RED };"
    )
    answer = [
        symbol(
            "Cart", 5, span(1, 0, 1, 22), span(1, 6), symbol("Cart", 9, span(1, 13), span(1, 13))
        ),
        symbol("Cart::add", 6, span(2, 0, 2, 34), span(2, 10)),
        symbol(
            "(anonymous enum)", 10, span(3, 0, 3, 12), span(3, 0),
            symbol("RED", 10, span(3, 7), span(3, 7)),
        ),
    ]  # fmt: skip
    rows = found(answer, "cpp", text)
    assert [(row[0], row[1], row[2]) for row in rows] == [
        ("MAX", "macro", ""),
        ("Cart", "class", ""),
        ("Cart", "method", "Cart"),
        ("add", "method", "Cart"),
        ("RED", "member", ""),
    ]


def test_parameters_in_a_name_are_left_out_and_keys_are_keys() -> None:
    java = found([symbol("add(int, int)", 6, span(0, 0), span(0, 0))], "java", "x")
    assert [row[:3] for row in java] == [("add", "method", "")]
    inner = symbol("a/b", 15, span(0, 8), span(0, 8))
    keys = found([symbol("build", 2, span(0, 1, 0, 12), span(0, 1), inner)], "json", " " * 20)
    assert [row[:3] for row in keys] == [("build", "key", ""), ("a/b", "key", "build")]


@pytest.mark.parametrize(
    "answer",
    [
        {},
        [None],
        [{"name": 3, "kind": 5, "range": span(0, 0), "selectionRange": span(0, 0)}],
        [{"name": "x" * 501, "kind": 5, "range": span(0, 0), "selectionRange": span(0, 0)}],
        [{"name": "x", "kind": 5}],
        [{"name": "x", "kind": 5, "location": None}],
        [symbol("x", 5, span(0, 3, 0, 1), span(0, 3))],
        [symbol("x", 5, span(-1, 0), span(0, 0))],
        [symbol("x", 5, {"start": {"line": True, "character": 0}}, span(0, 0))],
        [symbol("x", 5, span(0, 0, 0, 1), span(0, 4))],
        [{**symbol("x", 5, span(0, 0), span(0, 0)), "children": 3}],
    ],
)
def test_an_answer_against_the_protocol_is_refused(answer: Any) -> None:
    with pytest.raises(InvalidAnswer):
        found(answer, text="class X: ...")


def test_the_end_of_the_text_is_a_place() -> None:
    answer = [symbol("X", 5, span(0, 0, 1, 0), span(0, 6))]
    assert as_symbols(
        answer, Parsed("python", ["class X: ..."], [], []), encoding="utf-16"
    )[0][4] == 1  # fmt: skip
