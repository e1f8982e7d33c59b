"""The tools of the preset `code`, called in this process: what they answer, within every budget."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from support.mcp_session import FOLDER_VARIABLE, make_tree
from support.waiting import wait_until
from tsuzuki.collectors.codeindex.answers import changed_files
from tsuzuki.collectors.codeindex.tools.definitions import TOOLS
from tsuzuki.collectors.codeindex.tools.indexes import CodeIndexes
from tsuzuki.mcp.answer import ToolAnswer
from tsuzuki.mcp.calls import answer_call
from tsuzuki.mcp.tokens import tokens
from tsuzuki.mcp.tool import BUDGET_MIN, ServerState, ToolProgress

Ask = Callable[..., ToolAnswer]
FILES_COUNT = 14
FUNCTIONS_COUNT = 8
LONG_PATH = "/".join(["deep" * 12] * 6)
BUDGETS = [200, 700, 2_500, 12_000]


def function_text(file: int, number: int) -> str:
    return (
        f'def compute_{file}_{number}(first: "int" = 1, second: str = "\\t"):\n'
        f'    """続きを計算する。 Compute number {number} of \\"{file}\\"."""\n'
        f"    return shared_helper({file}) or {'x' * 30!r}\n\n\n"
    )


def many_files() -> dict[str, str]:
    files = {"helper.py": "def shared_helper(value):\n    return value\n"}
    for file in range(FILES_COUNT):
        body = "".join(function_text(file, number) for number in range(FUNCTIONS_COUNT))
        folder = LONG_PATH if file == 0 else f"package_{file % 4}"
        files[f"{folder}/module_{file}.py"] = f"from helper import shared_helper\n\n\n{body}"
    files["one_line.txt"] = "shared_helper " + "長い" * 20_000
    return files


@pytest.fixture(scope="module")
def ask_many(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Ask]:
    """Ask about a tree with 112 functions that all use one."""
    root = make_tree(tmp_path_factory.mktemp("many"), many_files())
    folder = tmp_path_factory.mktemp("many_indexes")
    state = ServerState(environ={FOLDER_VARIABLE: str(folder)}, cwd=root)

    def ask(name: str, /, **arguments: Any) -> ToolAnswer:
        return answer_call(TOOLS.tools, name, arguments, state=state, progress=ToolProgress())

    assert ask("code_index_build", wait_seconds=30).structured["status"] == "completed"
    yield ask
    state.close()


def walk(ask: Ask, name: str, arguments: Mapping[str, Any]) -> list[ToolAnswer]:
    answers: list[ToolAnswer] = []
    cursor = None
    while not answers or cursor:
        answers.append(ask(name, **arguments, **({"cursor": cursor} if cursor else {})))
        assert not answers[-1].is_error, answers[-1].text
        cursor = answers[-1].structured["cursor"]
    return answers


QUESTIONS = [
    ("code_search", {"query": "compute", "limit": 60}),
    ("code_search", {"query": ["compute_1", "shared_helper"], "limit": 30}),
    ("code_read", {"file": "package_1/module_1.py"}),
    ("code_read", {"symbols": ["compute_1_1", "compute_2_2", "no_such_thing", "helper.py"]}),
    ("code_references", {"name": "shared_helper"}),
    ("code_outline", {"file": "."}),
    ("code_map", {}),
]


@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize(("name", "arguments"), QUESTIONS, ids=lambda one: str(one)[:40])
def test_no_budget_is_exceeded_and_the_walk_is_complete(
    name: str, arguments: dict[str, Any], budget: int, ask_many: Ask
) -> None:
    limit = min(budget, next(one.budget_max for one in TOOLS.tools if one.name == name))
    answers = walk(ask_many, name, {**arguments, "budget": budget})
    for answer in answers:
        assert tokens(answer.content) <= limit
        assert (
            tokens(json.dumps(answer.structured, ensure_ascii=False, separators=(",", ":")))
            <= limit
        )
    last = answers[-1].structured
    assert sum(one.structured["shown"] for one in answers) == last["total"]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [*QUESTIONS, ("code_index_build", {}), ("code_index_status", {}), ("code_index_update", {})],
    ids=lambda one: str(one)[:40],
)
def test_a_first_page_is_within_every_budget(
    name: str, arguments: dict[str, Any], ask_many: Ask
) -> None:
    most = next(one.budget_max for one in TOOLS.tools if one.name == name)
    budget = 50
    while budget < 20_000:
        answer = ask_many(name, **arguments, budget=budget)
        limit = max(BUDGET_MIN, min(budget, most))
        assert tokens(answer.content) <= limit, budget
        written = json.dumps(answer.structured, ensure_ascii=False, separators=(",", ":"))
        assert tokens(written) <= limit, budget
        budget += budget // 3


@pytest.mark.parametrize("budget", [200, 1_500])
def test_the_walk_of_an_outline_names_each_symbol_once(budget: int, ask_many: Ask) -> None:
    shown = "\n".join(
        one.text for one in walk(ask_many, "code_outline", {"file": ".", "budget": budget})
    )
    for file in range(1, FILES_COUNT):
        for number in range(FUNCTIONS_COUNT):
            assert (
                shown.count(f"compute_{file}_{number}(") + shown.count(f"compute_{file}_{number} ")
                == 1
            )


def test_the_ladder_shortens_before_it_cuts(ask_many: Ask) -> None:
    forms = [
        ask_many("code_references", name="shared_helper", budget=budget).structured["form"]
        for budget in (5_000, 2_000, 900)
    ]
    assert forms == ["full", "signatures", "names by file"]


def test_what_does_not_fit_is_counted_by_folder(ask_many: Ask) -> None:
    answer = ask_many("code_outline", file=".", budget=300)
    assert answer.structured["cursor"] is not None
    assert "Not shown: package_" in answer.text
    assert "more with cursor=" in answer.header


def test_the_same_index_gives_the_same_map(ask_many: Ask) -> None:
    assert (
        ask_many("code_map", focus="helper.py").content
        == ask_many("code_map", focus=["helper.py"]).content
    )


def test_a_cursor_of_another_question_is_refused(ask_many: Ask) -> None:
    cursor = ask_many("code_search", query="compute").structured["cursor"]
    answer = ask_many("code_search", query="shared", cursor=cursor)
    assert answer.is_error
    assert "belongs to another call" in answer.text


def test_a_search_shows_definitions_with_their_doc_and_then_text(ask: Ask) -> None:
    answer = ask("code_search", query="total")
    lines = answer.text.splitlines()
    assert lines[0] == "shop/sums.py:1-2 function total"
    assert "shop/cart.py" in lines
    assert "docs/notes.md" in lines
    assert "  3: The total is 42 in the end." in lines
    assert "  1: def total(items):" not in lines


def test_a_search_can_be_narrowed(ask: Ask) -> None:
    assert ask("code_search", query="add", kind="method", glob="!tests").structured["total"] == 1
    found = ask("code_search", query=r"total is \d+", regex=True, **{"in": "text"})
    assert found.structured["total"] == 1
    assert ask("code_search", query="total", path="docs").structured["total"] == 1


def test_a_name_that_is_not_found_is_answered_with_a_guess(ask: Ask) -> None:
    answer = ask("code_search", query="Kart", **{"in": "names"})
    assert not answer.is_error
    assert 'Did you mean "Cart"?' in answer.text


def test_source_is_read_with_line_numbers(ask: Ask) -> None:
    assert ask("code_read", symbols=["Cart/add"]).text.splitlines() == [
        "shop/cart.py:9-11 method Cart/add",
        "9      def add(self, item: str) -> int:",
        '10          """Add one item."""',
        "11          return total([item])",
    ]
    assert ask("code_read", file="docs/notes.md", lines="3").text.endswith(
        "3  The total is 42 in the end."
    )
    assert ask("code_read", path="docs/notes.md").structured["total"] == 3


def test_an_ambiguous_name_is_a_list_of_candidates(ask: Ask) -> None:
    answer = ask("code_read", symbols=["total"])
    assert answer.is_error
    assert "shop/sums.py:total (function, line 1)" in answer.text
    assert "shop/web.js:total (function, line 1)" in answer.text
    assert answer.text.endswith('Next: code_read {"symbols":["shop/sums.py:total"]}')


@pytest.mark.parametrize(
    ("name", "key"), [("code_search", "query"), ("code_read", "symbols")], ids=["search", "read"]
)
def test_many_names_that_are_not_there_are_within_the_budget(
    name: str, key: str, ask_many: Ask
) -> None:
    unknown = [f"unknown_{number}" for number in range(12)]
    answer = ask_many(name, **{key: [*unknown, "shared_helper"], "budget": 200})
    assert not answer.is_error
    assert answer.fits(200)
    assert "unknown_0" in answer.text
    assert answer.structured["shown"] >= 1


def test_an_error_is_within_the_budget_and_keeps_its_next_call(ask_many: Ask) -> None:
    answer = ask_many("code_read", symbols=["x" * 5_000], budget=200)
    assert answer.is_error
    assert tokens(answer.content) <= 200
    assert "\nNext: code_search" in answer.text


def test_what_can_be_read_is_shown_beside_what_cannot(ask: Ask) -> None:
    answer = ask("code_read", symbols=["Cart/add", "total", "nothing"])
    assert not answer.is_error
    assert "shop/cart.py:9-11 method Cart/add" in answer.text
    assert "ambiguous_symbol: 'total' matches 2 symbols" in answer.text
    assert "no_such_symbol" in answer.text


def test_references_are_grouped_and_say_how_sure_they_are(ask: Ask) -> None:
    answer = ask("code_references", name="shop/sums.py:total")
    assert "3 references in 2 files, 3 exact." in answer.text
    assert "  in Cart/add\n    11 call imported: return total([item])" in answer.text
    assert "web.js" not in answer.text


def test_a_name_without_references_is_told_apart_from_one_that_is_not_defined(ask: Ask) -> None:
    assert ask("code_references", name="clear").text == "No references to 'clear'."
    told = ask("code_references", name="clea").text
    assert (
        told
        == "No references to 'clea'. It is not defined in this tree. Did you mean 'Cart/clear'?"
    )


@pytest.mark.parametrize(
    ("name", "arguments", "next_call"),
    [
        ("code_read", {"symbols": ["Cart/ad"]}, 'Next: code_search {"query":"ad"}'),
        ("code_read", {"file": "shop/kart.py"}, 'Next: code_outline {"file":"."}'),
        (
            "code_search",
            {"query": "a(", "regex": True},
            'Next: code_search {"query":"a(","in":"text"}',
        ),
        ("code_search", {"query": "a", "path": "nowhere"}, 'Next: code_search {"query":"a"}'),
        ("code_search", {"query": "a", "path": "/"}, 'Next: code_search {"query":"a"}'),
        ("code_search", {"query": "a", "path": "~"}, 'Next: code_search {"query":"a"}'),
        ("code_search", {"query": "a", "kind": "klass"}, 'Did you mean "class"?'),
        ("code_index_status", {"job_id": "build-1-aaaaaa"}, "Next: code_index_status {}"),
    ],
)
def test_a_refusal_names_the_next_call(
    name: str, arguments: dict[str, Any], next_call: str, ask: Ask
) -> None:
    ask(
        "code_index_build", wait_seconds=30
    )  # while an index is built, an unknown symbol is no refusal
    answer = ask(name, **arguments)
    assert answer.is_error
    assert next_call in answer.text
    assert "tsuzuki index" not in answer.text


def test_questions_about_a_watched_tree_walk_it_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = make_tree(tmp_path / "tree")
    state = ServerState(environ={FOLDER_VARIABLE: str(tmp_path / "indexes")}, cwd=root)

    def ask(name: str, /, **arguments: Any) -> ToolAnswer:
        return answer_call(TOOLS.tools, name, arguments, state=state, progress=ToolProgress())

    monkeypatch.setattr("tsuzuki.collectors.codeindex.tree.doubt.TICK_NS", 0)
    ask("code_search", query="total")
    indexes: CodeIndexes = state.part("code", CodeIndexes)
    watcher = indexes._watchers[root]
    wait_until(lambda: watcher.state == "watching", "the tree is watched")
    walks: list[Path] = []
    scan_tree = changed_files.scan_tree

    def counted(folder: Path, **options: Any) -> object:
        walks.append(folder)
        return scan_tree(folder, **options)

    monkeypatch.setattr(changed_files, "scan_tree", counted)
    for number in range(10):
        (root / "shop/late.py").write_text(f"def late_{number}():\n    pass\n")
        found = ask("code_search", query=f"late_{number}", **{"in": "names"})
        assert found.structured["total"] == 1
        assert ask("code_references", name="shop/sums.py:total").structured["total"] > 0
    assert len(walks) <= 3
    state.close()


def test_a_change_is_seen_at_once(tmp_path: Path) -> None:
    root = make_tree(tmp_path / "tree")
    state = ServerState(environ={FOLDER_VARIABLE: str(tmp_path / "indexes")}, cwd=root)

    def ask(name: str, /, **arguments: Any) -> ToolAnswer:
        return answer_call(TOOLS.tools, name, arguments, state=state, progress=ToolProgress())

    ask("code_index_update")
    above = "# more\n" * 45
    (root / "shop/cart.py").write_text(above + (root / "shop/cart.py").read_text())
    answer = ask("code_read", symbols=["Cart/add"])
    assert answer.text.startswith("shop/cart.py:54-56 method Cart/add")
    assert answer.structured["index"]["reread"] == 1
    state.close()
