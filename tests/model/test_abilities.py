"""Abilities: which jobs a worker can execute, and what it lacks for the others."""

from typing import Any

import pytest

from tsuzuki.model.abilities import Abilities, Lack, Needs, needs_of

ABLE = Abilities(
    kinds=frozenset({"command", "python"}),
    packages=frozenset({"shop"}),
    program="/srv/work.py",
    missing=frozenset({"shop.jobs:gone", "__main__:gone"}),
)


@pytest.mark.parametrize(
    ("kind", "options", "lack"),
    [
        ("command", {"argv": ["true"]}, None),
        ("books", {}, Lack.KIND),
        ("python", {"function": "shop.jobs:summarise"}, None),
        ("python", {"function": "shop:summarise", "program": "/of/no/meaning.py"}, None),
        ("python", {"function": "shop.jobs:gone"}, Lack.FUNCTION),
        ("python", {"function": "shopping:summarise"}, Lack.MODULE),
        ("python", {"function": "__main__:work", "program": "/srv/work.py"}, None),
        ("python", {"function": "__main__:gone", "program": "/srv/work.py"}, Lack.FUNCTION),
        ("python", {"function": "__main__:work", "program": "/home/work.py"}, Lack.PROGRAM),
        ("python", {"function": "__main__:work"}, Lack.PROGRAM),
    ],
)
def test_a_worker_lacks_what_it_has_not_registered(
    kind: str, options: dict[str, Any], lack: Lack | None
) -> None:
    assert ABLE.lack(needs_of(kind, options)) is lack


def test_a_process_that_is_no_program_has_no_function_of_any() -> None:
    plain = Abilities(kinds=frozenset({"python"}), packages=frozenset({"__main__"}))
    assert plain.lack(Needs("python", "__main__:work", "__main__", None)) is Lack.PROGRAM


def test_abilities_are_read_back_as_they_were_stored() -> None:
    assert Abilities.from_text(ABLE.as_text()) == ABLE
    assert Abilities.from_text(None) is None
