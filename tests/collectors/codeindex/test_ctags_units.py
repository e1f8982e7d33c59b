"""The unit cases of universal-ctags, given by path: the share of their tags that we find may only rise.

`make check-ctags CTAGS_UNITS=/path/to/ctags/Units` checks it; with `RAISE=1` what is better now is stored.
"""

import json
import os
import sys
from pathlib import Path

import pytest

from .ctags_units import EXPECTED, agreement

TABLE = Path(__file__).with_name("ctags_agreement.json")
UNITS = os.environ.get("CTAGS_UNITS", "")
MISSING_SHOWN_MAX = int(os.environ.get("SHOW", "0"))


def test_a_case_is_compared_by_the_names_of_its_definitions(tmp_path: Path) -> None:
    case = tmp_path / "parser-python.r" / "simple.d"
    case.mkdir(parents=True)
    (case / "input.py").write_text("class Cart:\n    def add(self): ...\n")
    tags = [
        ("Cart.add", "m"),
        ("Cart", "kind:class"),
        ("gone", "f"),
        ("self", "z"),
        ("__anon1", "c"),
    ]
    (case / "expected.tags").write_text(
        "".join(f'{name}\tinput.py\t/^x$/;"\t{kind}\n' for name, kind in tags)
    )
    found = agreement(tmp_path, EXPECTED[0])
    assert (found.expected, found.found, found.missing) == (3, 2, ["simple.d f gone"])


@pytest.mark.full
@pytest.mark.skipif(not UNITS, reason="needs CTAGS_UNITS, the path of the unit cases")
def test_the_agreement_with_the_unit_cases_of_ctags_only_rises() -> None:
    stored: dict[str, float] = json.loads(TABLE.read_text("utf-8"))
    found = {one.language: agreement(Path(UNITS), one) for one in EXPECTED}
    for language, one in found.items():
        sys.stdout.write(f"{language:12} {one.found:5} of {one.expected:5}  {one.share:.1%}\n")
        for missing in one.missing[:MISSING_SHOWN_MAX]:
            sys.stdout.write(f"    {missing}\n")
    assert all(one.expected for one in found.values())
    fallen = {
        language: (share, found[language].share)
        for language, share in stored.items()
        if found[language].share < share
    }
    assert fallen == {}
    if os.environ.get("RAISE"):
        risen = {language: int(1000 * one.share) / 1000 for language, one in found.items()}
        TABLE.write_text(json.dumps(risen, indent=2) + "\n", encoding="utf-8")
