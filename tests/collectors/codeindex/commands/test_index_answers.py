"""`tsuzuki index search|read|references|outline|map`, typed in a folder that is no workspace."""

from pathlib import Path

import pytest

from support.workspace import Ended, Workspace

FILES = {
    "app/server.py": (
        "class Server:\n"
        '    """Serves."""\n'
        "\n"
        "    def start(self):\n"
        "        return self.stop()\n"
        "\n"
        "    def stop(self):\n"
        "        return 'needle'\n"
    ),
    "app/main.py": "from app.server import Server\n\n\ndef main():\n    Server().start()\n",
    "web/server.ts": "export class Server { start() {} }\n",
}


class Tree:
    """Files, and `tsuzuki index` typed among them."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._folder = str(workspace.folder / "indexes")
        self.root = workspace.folder / "tree"
        for path, text in FILES.items():
            (self.root / path).parent.mkdir(parents=True, exist_ok=True)
            (self.root / path).write_text(text, encoding="utf-8")

    def run(self, *words: str) -> Ended:
        options = () if words[0] == "build" else ("--root", str(self.root))
        root = (str(self.root),) if words[0] == "build" else ()
        return self._workspace.run(
            "index", *words, *root, *options, TSUZUKI_CODEINDEX_FOLDER=self._folder
        )

    def ok(self, *words: str) -> Ended:
        ended = self.run(*words)
        assert ended.code == 0, ended.err
        return ended


@pytest.fixture
def unindexed(empty: Workspace) -> Tree:
    return Tree(empty)


@pytest.fixture
def tree(unindexed: Tree) -> Tree:
    unindexed.ok("build")
    return unindexed


def test_search_shows_definitions_and_then_lines(tree: Tree) -> None:
    ended = tree.ok("search", "server")
    first, *rows = ended.out.splitlines()
    assert first.split() == ["PLACE", "KIND", "NAME", "TEXT"]
    assert [row.split()[:3] for row in rows] == [
        ["app/server.py:1", "class", "Server"],
        ["web/server.ts:1", "class", "Server"],
        ["app/main.py:1", "text", "-"],
    ]
    found = tree.ok("search", "needle", "--output", "json").data
    assert [(one["kind"], one["path"], one["line"]) for one in found] == [
        ("text", "app/server.py", 8)
    ]


def test_search_narrows_by_kind_language_path_and_place(tree: Tree) -> None:
    def places(*words: str) -> list[str]:
        return [one["place"] for one in tree.ok("search", *words, "--output", "json").data]

    assert places("server", "--language", "typescript") == ["web/server.ts:1"]
    assert places("server", "--path", "!web", "--kind", "class") == ["app/server.py:1"]
    assert places("Server/st", "--in", "names", "--path", "*.py") == [
        "app/server.py:7",
        "app/server.py:4",
    ]
    assert places("--regex", r"need\w+'$") == ["app/server.py:8"]
    assert places("NEEDLE", "--in", "text") == []
    assert places("NEEDLE", "--in", "text", "-i") == ["app/server.py:8"]


def test_a_search_that_finds_nothing_says_what_is_similar(tree: Tree) -> None:
    ended = tree.ok("search", "Servre", "--in", "names")
    assert ended.out == ""
    assert 'Did you mean "Server"?' in ended.err


def test_read_shows_source_with_its_lines(tree: Tree) -> None:
    assert tree.ok("read", "Server/stop").out == (
        "app/server.py:7-8 method Server/stop\n7      def stop(self):\n8          return 'needle'\n"
    )
    plain = tree.ok("read", "app/main.py:4-5", "--output", "plain").out
    assert plain == "app/main.py\t4\tdef main():\napp/main.py\t5\t    Server().start()\n"
    (excerpt,) = tree.ok("read", "app/main.py", "--lines", "4-5", "--output", "json").data
    assert (excerpt["start"], excerpt["end"], len(excerpt["lines"])) == (4, 5, 2)


def test_read_is_right_at_once_after_an_edit(tree: Tree) -> None:
    where = tree.root / "app/server.py"
    where.write_text("# line\n" * 45 + FILES["app/server.py"], encoding="utf-8")
    assert tree.ok("read", "Server/stop").out.startswith("app/server.py:52-53 method Server/stop\n")


def test_an_ambiguous_name_is_refused_with_candidates(tree: Tree) -> None:
    ended = tree.run("read", "Server", "--output", "json")
    assert ended.code == 2
    assert ended.error["code"] == "ambiguous_symbol"
    assert ended.error["candidates"] == [
        "app/server.py:Server (class, line 1)",
        "web/server.ts:Server (class, line 1)",
    ]
    assert "app/server.py:Server" in tree.run("read", "Server").err


def test_references_tell_how_sure_they_are(tree: Tree) -> None:
    ended = tree.ok("references", "app/server.py:Server", "--output", "json")
    assert {(one["place"], one["confidence"], one["exact"]) for one in ended.data} == {
        ("app/main.py:1", "imported", True),
        ("app/main.py:5", "imported", True),
    }
    assert "2 references, 2 of them exact" in tree.ok("references", "Server").err
    (tree.root / "app" / "more.py").write_text("def f(x):\n    x.start()\n", encoding="utf-8")
    ended = tree.ok("references", "start", "--output", "json")
    assert {(one["place"], one["exact"]) for one in ended.data} == {
        ("app/main.py:5", True),
        ("app/more.py:2", False),
    }
    assert "app/more.py" not in tree.ok("references", "start", "--exact").out


def test_outline_and_map(tree: Tree) -> None:
    rows = tree.ok("outline", "app/server.py").out.splitlines()[1:]
    assert [row.split()[2] for row in rows] == ["Server", "start", "stop"]
    folder = tree.ok("outline", "--kind", "class", "--output", "json").data
    assert [one["path"] for one in folder] == ["app/server.py", "web/server.ts"]
    ranked = tree.ok("map", "--output", "json").data
    assert ranked[0]["path"] == "app/server.py"
    assert tree.ok("map").out == tree.ok("map").out


def test_without_an_index_the_next_step_is_named(unindexed: Tree) -> None:
    ended = unindexed.run("references", "Server")
    assert ended.code == 4
    assert "index_missing" in ended.err
    assert "tsuzuki index build" in ended.err
    found = unindexed.ok("search", "needle")
    assert "app/server.py:8" in found.out
    assert "there is no index yet" in found.err


@pytest.mark.parametrize(
    ("words", "code", "what"),
    [
        (("search",), 2, "Missing argument"),
        (("search", "x", "--in", "nowhere"), 2, "--in"),
        (("search", "x", "--limit", "0"), 2, "--limit"),
        (("search", "x", "--kindd", "class"), 2, "--kind"),
        (("search", "x", "--kind", "clas"), 2, "class"),
        (("search", "--regex", "("), 2, "bad_regex"),
        (("read", "app/servr.py"), 4, "app/server.py"),
        (("read", "app/server.py:99"), 4, "8 lines"),
        (("read",), 2, "NAME"),
        (("outline", "nowhere"), 4, "no_such_file"),
        (("map", "--limit", "x"), 2, "--limit"),
    ],
)
def test_bad_arguments(tree: Tree, words: tuple[str, ...], code: int, what: str) -> None:
    ended = tree.run(*words)
    assert (ended.code, ended.out) == (code, "")
    assert what in ended.err


def test_a_root_that_cannot_be_used_is_refused(empty: Workspace, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    for root, code in (("/", 2), ("nowhere", 4), ("file", 2)):
        assert empty.run("index", "search", "x", "--root", root).code == code
