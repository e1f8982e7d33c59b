"""The order of the tests, and the database that a test runs on, are drawn from a seed."""

from itertools import groupby
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from support.suite import shuffled, twins_left_out


class Item(SimpleNamespace):
    """As much of a pytest item as is looked at."""

    __hash__ = object.__hash__


def item(name: str, dialect: str | None = None, *marks: str) -> Any:
    path, _, test = name.partition("::")
    given = f"{test}[{dialect}]" if dialect else test
    params = {"dialect": dialect} if dialect else {}
    return Item(
        nodeid=f"{path}::{given}",
        path=Path(path),
        callspec=SimpleNamespace(params=params),
        get_closest_marker=lambda wanted: wanted if wanted in marks else None,
    )


ITEMS = [item(f"tests/m{module}.py::t{number}") for module in range(6) for number in range(5)]


def test_modules_stay_whole_in_an_order_of_the_seed() -> None:
    first = shuffled(ITEMS, 1)
    assert len([*groupby(one.path for one in first)]) == 6
    assert [one.nodeid for one in first] == [one.nodeid for one in shuffled(ITEMS, 1)]
    assert [one.nodeid for one in first] != [one.nodeid for one in shuffled(ITEMS, 2)]
    assert sorted(one.nodeid for one in first) == [one.nodeid for one in ITEMS]


def left_out(items: list[Any], seed: int) -> list[str]:
    return sorted(one.nodeid for one in twins_left_out(items, seed))


def twins(name: str, *marks: str) -> list[Any]:
    return [item(name, dialect, *marks) for dialect in ("sqlite", "postgresql")]


def test_of_twins_one_is_left_out_where_the_databases_hardly_differ() -> None:
    pairs = [pair for number in range(20) for pair in twins(f"tests/services/test_a.py::t{number}")]
    found = left_out(pairs, 1)
    assert len(found) == 20
    assert {name.partition("[")[2] for name in found} == {"sqlite]", "postgresql]"}
    assert found == left_out(pairs, 1)
    assert found != left_out(pairs, 2)


def test_both_twins_stay_where_the_databases_may_differ() -> None:
    for place in ("store/test_a", "engine/leader/test_a", "collectors/feeds/queries/test_a"):
        assert left_out(twins(f"tests/{place}.py::t"), 1) == []
    assert left_out(twins("tests/services/test_a.py::t", "both_databases"), 1) == []


def test_a_test_of_one_database_stays() -> None:
    alone = [item("tests/services/test_a.py::t", "sqlite"), item("tests/services/test_a.py::u")]
    assert [left_out(alone, seed) for seed in range(4)] == [[]] * 4
