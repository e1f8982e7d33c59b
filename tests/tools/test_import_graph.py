"""Which tests a change can break, from imports."""

from pathlib import Path

import pytest

from tools.changed_tests import test_modules as modules_of_tests
from tools.import_graph import ROOT, Users, by_distance, users_of_files


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    files = {
        "src/shop/__init__.py": "",
        "src/shop/prices.py": "RATE = 2\n",
        "src/shop/orders.py": "from shop.prices import RATE\n",
        "src/shop/bills.py": "from . import orders\n",
        "src/shop/commands.py": 'TARGET = "shop.bills:run"\n',
        "tests/support/__init__.py": "",
        "tests/support/site.py": "import shop.commands\n",
        "tests/shop/conftest.py": "from support import site\n",
        "tests/shop/test_pages.py": "",
        "tests/shop/test_prices.py": "from shop import prices\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_a_file_is_as_far_from_a_change_as_the_imports_between_them(tree: Path) -> None:
    found = by_distance([tree / "src/shop/prices.py"], users_of_files(tree))
    assert {path.relative_to(tree).as_posix(): steps for path, steps in found.items()} == {
        "src/shop/prices.py": 0,
        "src/shop/orders.py": 1,
        "tests/shop/test_prices.py": 1,
        "src/shop/bills.py": 2,
        "src/shop/commands.py": 3,
        "tests/support/site.py": 4,
        "tests/shop/conftest.py": 5,
        "tests/shop/test_pages.py": 6,
    }


@pytest.fixture(scope="module")
def users() -> Users:
    return users_of_files()


@pytest.mark.parametrize(
    ("changed", "nearest"),
    [
        ("src/tsuzuki/model/retry.py", "tests/model/test_retry.py"),
        ("src/tsuzuki/web/templates/screens/views.html", "tests/pages/test_views_pages.py"),
        ("tests/model/test_retry.py", "tests/model/test_retry.py"),
        ("docs/discussion/proof.md", "tests/simulation/test_proof.py"),
    ],
)
def test_the_tests_of_a_module_come_first(users: Users, changed: str, nearest: str) -> None:
    found = [
        path.relative_to(ROOT).as_posix() for path in modules_of_tests([ROOT / changed], users)
    ]
    assert nearest in found[:40]
