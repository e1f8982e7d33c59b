"""The changes that `make mutants` draws from, and the probes that find the tests that reach them."""

import ast
from collections import Counter
from pathlib import Path

from tools.import_graph import ROOT
from tools.mutants.command import Verdict, area_of, draw, report
from tools.mutants.command import tests_for as chosen_tests
from tools.mutants.mutations import Mutant, mutants_of
from tools.mutants.reach import Reach, with_probes

SOURCE = '''\
def allowed(user, limit):
    """A docstring is no statement."""
    if user.is_gone:
        return None
    elif user.count >= limit and not user.is_admin:
        log.warn("no", user=user)
    rows = select(table).where(table.c.id == user.id, table.c.open)
    return rows if rows else send(rows, at_once=True)
'''
FILE = Path("src/tsuzuki/store/runs/queue.py")


def changed() -> dict[str, list[str]]:
    """The mutated sources by kind, each as the line that differs."""
    found: dict[str, list[str]] = {}
    lines = SOURCE.splitlines()
    for mutant in mutants_of(FILE, SOURCE.encode()):
        mutated = mutant.applied(SOURCE.encode()).decode()
        ast.parse(mutated)
        (new,) = [b for a, b in zip(lines, mutated.splitlines(), strict=True) if a != b]
        found.setdefault(mutant.kind, []).append(new.strip())
    return found


def test_every_kind_of_change_is_drawn_from() -> None:
    found = changed()
    assert found["negated condition"] == [
        "if not (user.is_gone):",
        "elif not (user.count >= limit and not user.is_admin):",
        "return rows if not (rows) else send(rows, at_once=True)",
    ]
    assert found["dropped early return"] == ["pass"]
    assert found["dropped statement"] == ["pass"]
    assert found["and / or"] == ["elif ((user.count >= limit) or (not user.is_admin)):"]
    assert found["boundary"] == ["elif user.count > limit and not user.is_admin:"]
    assert found["dropped conjunct"] == [
        "rows = select(table).where(table.c.open)",
        "rows = select(table).where(table.c.id == user.id)",
    ]
    assert found["dropped keyword"] == ['log.warn("no")', "return rows if rows else send(rows)"]


def test_a_probe_stands_before_each_statement_and_before_the_chain_of_an_elif() -> None:
    lines = dict(enumerate((4, 5, 7)))
    probed = with_probes(SOURCE, lines).splitlines()
    ast.parse("\n".join(probed))
    places = [number for number, line in enumerate(probed) if ".reached(" in line]
    assert [probed[place + 1].strip() for place in places] == [
        "if user.is_gone:",
        "return None",
        "rows = select(table).where(table.c.id == user.id, table.c.open)",
    ]


def test_a_seed_draws_the_same_mutants_half_of_them_in_the_core() -> None:
    drawn = draw(7, 20, ROOT)
    assert drawn == draw(7, 20, ROOT)
    assert drawn != draw(8, 20, ROOT)
    core = Counter(area_of(one.path) in {"model", "store", "engine", "services"} for one in drawn)
    assert core == {True: 10, False: 10}


def test_the_nearest_and_fastest_tests_come_first_and_only_as_many_as_there_is_time_for() -> None:
    mutant = Mutant(path=FILE, kind="boundary", line=1, start=0, end=0, new="")
    seconds = {
        "tests/store/runs/test_queue.py::b": 2.0,
        "tests/store/runs/test_queue.py::a": 1.0,
        "tests/engine/test_x.py::long": 500.0,
        "tests/engine/test_x.py::c": 0.1,
    }
    reach = Reach(tests={3: frozenset(seconds)}, seconds=seconds)
    assert [name[-1] for name in chosen_tests(mutant, 3, reach)] == ["a", "b", "c"]
    assert chosen_tests(mutant, 4, reach) == []


def test_a_report_counts_the_killed_by_area() -> None:
    verdicts = [
        Verdict(
            mutant=Mutant(path=Path(path), kind="boundary", line=1, start=0, end=0, new=""),
            is_killed=is_killed,
            by="",
        )
        for path, is_killed in [
            ("src/tsuzuki/store/a.py", True),
            ("src/tsuzuki/engine/b.py", False),
            ("src/tsuzuki/cli/c.py", True),
        ]
    ]
    assert [line.split() for line in report(verdicts).splitlines()][-3:] == [
        ["core", "1", "of", "2", "50%"],
        ["outside", "1", "of", "1", "100%"],
        ["all", "2", "of", "3", "67%"],
    ]
