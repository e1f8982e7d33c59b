"""Answers about a real tree: always of one state of it, with or without an index, and refusals that help."""

import os
import subprocess
import time
from collections.abc import Callable
from contextlib import nullcontext
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from collectors.codeindex.service.checkout import git, two_branches
from collectors.codeindex.service.switching import ask_during_switches
from support.waiting import wait_until
from tsuzuki.collectors.codeindex.answers.changed_files import tree_changes
from tsuzuki.collectors.codeindex.answers.consistent_answer import ABANDONED_LOCK_SECONDS
from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.answers.git_state import head_commit
from tsuzuki.collectors.codeindex.builds.job import BuildStatus
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE, IndexFile
from tsuzuki.collectors.codeindex.service.answers import CodeAnswers
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.collectors.codeindex.service.watcher import Watcher
from tsuzuki.model.clock import ManualClock
from tsuzuki.model.errors import NotFound, TsuzukiError, UsageError


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "tree"


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {FOLDER_VARIABLE: str(tmp_path / "indexes")}


@pytest.fixture
def build(root: Path, environ: dict[str, str]) -> Callable[[], None]:
    def run() -> None:
        builds = Builds(environ=environ, workers=1)
        job = builds.jobs.wait(builds.start(root.resolve()).id, 60)
        assert job is not None
        assert job.status is BuildStatus.COMPLETED

    return run


@pytest.fixture
def answers(root: Path, environ: dict[str, str]) -> CodeAnswers:
    root.mkdir(exist_ok=True)
    return CodeAnswers.of(str(root), cwd=root, environ=environ)


def commit_of(root: Path) -> str:
    command = ["git", "rev-parse", "--short=12", "HEAD"]
    return subprocess.run(
        command, cwd=root, check=True, capture_output=True, text=True
    ).stdout.strip()


def write(root: Path, **files: str) -> None:
    root.mkdir(exist_ok=True)
    for name, text in files.items():
        (root / f"{name}.py").write_text(text, encoding="utf-8")


def test_a_branch_switch_during_questions_never_mixes_two_trees(
    root: Path, environ: dict[str, str], build: Callable[[], None]
) -> None:
    two_branches(root, files=60)
    build()
    answers = CodeAnswers.of(str(root), cwd=root, environ=environ)
    assert ask_during_switches(root, answers, files=60, rounds=20) > 5


@pytest.mark.full
@pytest.mark.timeout(900)
def test_switches_of_3000_files_during_200_questions_never_mix_two_trees(
    root: Path, environ: dict[str, str], build: Callable[[], None]
) -> None:
    two_branches(root, files=3_000)
    build()
    answers = CodeAnswers.of(str(root), cwd=root, environ=environ)
    with Watcher(root, builds=Builds(environ=environ)):
        switches = ask_during_switches(root, answers, files=3_000, rounds=100, settled_min=50)
        assert switches > 20
        wait_until(
            lambda: answers.search("place_3", lines=False).index.pending == 0,
            "the watcher has indexed the last branch",
        )


@pytest.mark.parametrize("is_watched", [False, True], ids=["alone", "watched"])
def test_45_lines_above_a_function_are_seen_at_once_and_ever_after(
    root: Path, environ: dict[str, str], build: Callable[[], None], is_watched: bool
) -> None:
    """Asked without a pause until a second after the save: at once, after 50, 150 and 1,000 ms."""
    below = "def second():\n    return 2\n"
    write(root, a=f"def first():\n    return 1\n{below}", b="first = 1\n")
    build()
    answers = CodeAnswers.of(str(root), cwd=root, environ=environ)
    with Watcher(root, builds=Builds(environ=environ)) if is_watched else nullcontext():
        for above in (45, 90):
            asked = [0.0]
            write(root, a="# comment\n" * above + f"def first():\n    return 1\n{below}")
            saved = time.monotonic()
            while asked[-1] < 1:
                (excerpt,) = answers.read(["second"]).value
                assert (excerpt.start, excerpt.end) == (above + 3, above + 4)
                assert [text for _, text in excerpt.lines] == below.splitlines()
                names = answers.search("second", lines=False).value.names
                assert names is not None
                assert [one.symbol.line for one in names.found] == [above + 3]
                asked.append(time.monotonic() - saved)
            assert len(asked) > 4


def test_an_abandoned_lock_of_git_is_told_of_and_not_waited_for(
    root: Path, answers: CodeAnswers
) -> None:
    two_branches_root = root / "checkout"
    two_branches(two_branches_root, files=1)
    lock = two_branches_root / ".git" / "index.lock"
    lock.touch()
    long_ago = lock.stat().st_mtime - 2 * ABANDONED_LOCK_SECONDS
    os.utime(lock, (long_ago, long_ago))
    answer = CodeAnswers(two_branches_root, cwd=root).read(["f0.py"])
    assert answer.index.state == "changing"


def test_new_changed_and_removed_files_count_at_once(
    root: Path, answers: CodeAnswers, build: Callable[[], None]
) -> None:
    write(root, a="def alpha(): ...\n", b="def beta(): ...\nbeta()\n", c="def gamma(): ...\n")
    build()
    write(root, new="from b import beta\nbeta()\n\n\ndef alpha_two(): ...\n")
    write(root, c="# moved\ndef gamma_two(): ...\n")
    (root / "a.py").unlink()
    found = answers.search("alpha", lines=False)
    assert [one.symbol.name_path for one in found.value.names.found] == ["alpha_two"]  # type: ignore[union-attr]
    assert found.index.reread == 2
    assert {one.path for one in answers.references("beta").value.uses} == {"b.py", "new.py"}
    assert answers.read(["gamma_two"]).value[0].start == 2
    with pytest.raises(NotFound):
        answers.read(["gamma"])


@pytest.mark.parametrize("were_known", [True, False])
def test_files_that_a_build_has_to_index_are_counted_and_not_parsed(
    were_known: bool, root: Path, answers: CodeAnswers, build: Callable[[], None]
) -> None:
    numbers = range(250)
    write(root, alpha="def alpha(): pass\n")
    os.utime(root / "alpha.py", (0, 0))
    if were_known:
        write(root, **{f"module_{number}": "" for number in numbers})
    build()
    write(root, **{f"module_{number}": f"def more_{number}(): pass\n" for number in numbers})
    found = answers.search("alpha")
    assert (found.index.pending, found.index.reread) == (250, 0)
    assert found.value.names
    assert [one.symbol.name for one in found.value.names.found] == ["alpha"]


def test_an_answer_names_the_commit_wherever_git_keeps_it(root: Path, tmp_path: Path) -> None:
    two_branches(root, files=1)
    wanted = commit_of(root)
    assert head_commit(root) == wanted
    git(root, "pack-refs", "--all")
    assert head_commit(root) == wanted
    git(root, "worktree", "add", "--quiet", "-b", "third", str(tmp_path / "second"))
    assert head_commit(tmp_path / "second") == wanted
    git(root, "checkout", "--quiet", "--detach")
    assert head_commit(root) == wanted
    (tmp_path / "plain").mkdir()
    assert head_commit(tmp_path / "plain") is None


def test_what_was_parsed_for_an_answer_is_stored_for_the_next(
    root: Path, answers: CodeAnswers, build: Callable[[], None]
) -> None:
    write(root, a="def alpha(): ...\n")
    build()
    write(root, a="def beta(): ...\n")
    assert [answers.read(["beta"]).index.reread for _ in range(2)] == [1, 0]


def test_an_answer_does_not_wait_for_a_writer_nor_fail_because_of_it(
    root: Path, environ: dict[str, str], answers: CodeAnswers, build: Callable[[], None]
) -> None:
    write(root, a="def alpha(): ...\n")
    build()
    write(root, a="def beta(): ...\n")
    with (
        IndexFile.open(root, folder=Path(environ[FOLDER_VARIABLE])) as other,
        other.transaction(lambda _connection: True),
    ):
        assert answers.read(["beta"]).index.reread == 1


def test_a_file_in_doubt_is_compared_once_and_then_trusted(
    root: Path, environ: dict[str, str], build: Callable[[], None]
) -> None:
    write(root, a="def alpha(): ...\n")
    build()
    clock = ManualClock(datetime.now(UTC) + timedelta(minutes=1))
    answers = CodeAnswers(root, cwd=root, folder=Path(environ[FOLDER_VARIABLE]), clock=clock)
    compared = []
    for _ in range(2):
        with IndexFile.open_existing(root, folder=Path(environ[FOLDER_VARIABLE])) as index:  # type: ignore[union-attr]
            files = FreshFiles(root, index.connection)
            tree_changes(files)
            compared.append(len(files.confirmed))
        answers.search("alpha")
    assert compared == [1, 0]


def test_too_many_changes_are_counted_and_what_is_quoted_is_still_true(
    root: Path, answers: CodeAnswers, build: Callable[[], None]
) -> None:
    write(root, **{f"f{number}": f"def old_{number}(): ...\n" for number in range(210)})
    build()
    write(root, **{f"f{number}": f"\n\ndef old_{number}(): ...\n" for number in range(210)})
    answer = answers.search("old_", lines=False, limit=5)
    assert answer.index.pending == 210
    assert {one.symbol.line for one in answer.value.names.found} == {3}  # type: ignore[union-attr]


def test_without_an_index_text_files_and_outlines_are_answered(
    root: Path, answers: CodeAnswers
) -> None:
    write(root, a="def alpha():\n    return 'needle'\n")
    assert answers.read(["a.py:1-1"]).value[0].lines == [(1, "def alpha():")]
    assert answers.read(["a.py:alpha"]).value[0].end == 2
    assert [entry.symbol.name for entry in answers.outline().value] == ["alpha"]
    found = answers.search("needle")
    assert found.index.state == "missing"
    assert [(line.line, line.column) for line in found.value.lines] == [(2, 12)]
    for ask in (
        lambda: answers.search("alpha", lines=False),
        lambda: answers.references("alpha"),
        answers.map,
        lambda: answers.read(["alpha"]),
    ):
        with pytest.raises(NotFound) as refused:
            ask()
        assert refused.value.specific_code == "index_missing"
        assert "tsuzuki index build" in (refused.value.hint or "")


@pytest.mark.parametrize(
    ("ask", "code", "hint"),
    [
        (lambda a: a.read(["pkg/alhpa.py"]), "no_such_file", "alpha.py"),
        (lambda a: a.read(["alpha.py:alpah"]), "no_such_symbol", "alpha"),
        (lambda a: a.read(["alpah"]), "no_such_symbol", "alpha"),
        (lambda a: a.read(["alpha.py:900"]), "no_such_line", ""),
        (lambda a: a.read(["alpha.py:0-3"]), "bad_lines", "10-20"),
        (lambda a: a.read(["alpha.py"], lines="x"), "bad_lines", "10-20"),
        (lambda a: a.read(["/"]), "bad_symbol", ""),
        (lambda a: a.read(["../outside.py"]), "no_such_file", ""),
        (lambda a: a.search("["), None, ""),
        (lambda a: a.search("[", regex=True), "bad_regex", "--regex"),
        (lambda a: a.search("", lines=False), "bad_symbol", ""),
        (lambda a: a.search("x", kinds=["clas"]), "unknown_kind", "class"),
        (lambda a: a.search("x", languages=["pyton"]), "unknown_language", "python"),
        (lambda a: a.references("alpha", kinds=["cal"]), "unknown_kind", "call"),
        (lambda a: a.references("alpha.py"), "bad_symbol", "alpha.py:name"),
        (lambda a: a.references("Wrong/alpha"), "no_such_symbol", ""),
        (lambda a: a.outline("alhpa.py"), "no_such_file", "alpha.py"),
        (lambda a: a.outline("/etc"), "no_such_file", ""),
    ],
)
def test_bad_arguments_are_refused_with_what_to_do(
    root: Path,
    answers: CodeAnswers,
    build: Callable[[], None],
    ask: Callable[[CodeAnswers], object],
    code: str | None,
    hint: str,
) -> None:
    write(root.parent, outside="def secret(): ...\n")
    write(root, alpha="def alpha(): ...\n")
    build()
    if code is None:
        ask(answers)
        return
    with pytest.raises(TsuzukiError) as refused:
        ask(answers)
    assert refused.value.specific_code == code
    assert hint in (refused.value.hint or "")


def test_a_path_may_be_relative_to_the_current_folder_or_to_the_root(
    root: Path, environ: dict[str, str]
) -> None:
    (root / "pkg").mkdir(parents=True)
    write(root / "pkg", a="def inner(): ...\n")
    answers = CodeAnswers.of(str(root), cwd=root / "pkg", environ=environ)
    for text in ("a.py", "pkg/a.py", "./a.py", str(root / "pkg" / "a.py")):
        assert answers.read([text]).value[0].path == "pkg/a.py"


def test_a_link_that_leads_out_of_the_tree_is_not_read(root: Path, answers: CodeAnswers) -> None:
    write(root.parent, outside="def secret(): ...\n")
    (root / "link.py").symlink_to(root.parent / "outside.py")
    with pytest.raises((NotFound, UsageError)):
        answers.read(["link.py"])
