"""What a watcher knows of a tree is what a walk would find, after every change and without walking."""

import os
import random
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from collectors.codeindex.conftest import Build, git
from collectors.codeindex.watch.watched import Watched, write
from tsuzuki.collectors.codeindex.answers.changed_files import TreeChanges, tree_changes
from tsuzuki.collectors.codeindex.answers.freshness import FreshFiles
from tsuzuki.collectors.codeindex.builds.claim import claim_build
from tsuzuki.collectors.codeindex.index_file import IndexFile
from tsuzuki.collectors.codeindex.queries import builds as build_rows
from tsuzuki.collectors.codeindex.queries import files as stored_files
from tsuzuki.collectors.codeindex.queries import lookups
from tsuzuki.collectors.codeindex.service.answers import CodeAnswers
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.collectors.codeindex.watch import live_tree as live_tree_module
from tsuzuki.collectors.codeindex.watch import notifier as notifier_module
from tsuzuki.collectors.codeindex.watch.live_tree import LiveTree
from tsuzuki.collectors.codeindex.watch.notifier import Notifier
from tsuzuki.model.clock import Clock, SystemClock

OLD_SECONDS = 1_700_000_000


class Live:
    """A live tree without a watcher: only questions read its notifications."""

    def __init__(self, root: Path, index_folder: Path, clock: Clock) -> None:
        self.root = root
        self.walks = 0
        self._folder = index_folder
        own = os.fspath(index_folder)
        self.notifier = Notifier(
            root, stopping=threading.Event(), is_own=lambda path: path.startswith(own)
        )
        self.tree = LiveTree(root, self.notifier, clock)

    def ask(self) -> TreeChanges:
        """What it knows, which is what a walk finds with the same state of the index."""
        find_changes = self.tree.catch_up() or tree_changes
        with self.reading() as files:
            found = find_changes(files)
            walked = tree_changes(files)
        assert {*found.scanned} == {*walked.scanned}
        assert {*found.listed} & {*found.scanned} == {*walked.listed} & {*walked.scanned}
        assert ({*found.paths}, found.pending) == ({*walked.paths}, walked.pending)
        return found

    def ask_without_walk(self) -> TreeChanges:
        before = self.walks
        found = self.ask()
        assert self.walks == before
        return found

    def ask_with_walk(self) -> TreeChanges:
        before = self.walks
        found = self.ask()
        assert self.walks == before + 1
        return found

    @contextmanager
    def reading(self) -> Iterator[FreshFiles]:
        index = IndexFile.open_existing(self.root, folder=self._folder)
        assert index is not None
        with index:
            lookups.begin_reading(index.connection)
            yield FreshFiles(self.root, index.connection)
            lookups.end_reading(index.connection)


@pytest.fixture
def make_live(index_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Live]]:
    made: list[Live] = []
    walk = live_tree_module.walk_tree

    def make(root: Path, clock: Clock | None = None) -> Live:
        made.append(Live(root, index_folder, clock or SystemClock()))
        return made[-1]

    def counted(files: FreshFiles) -> object:
        for one in made:
            one.walks += one.root == files.root
        return walk(files)

    monkeypatch.setattr(live_tree_module, "walk_tree", counted)
    yield make
    for one in made:
        one.notifier.close()


def age(root: Path) -> None:
    """Files whose mtime is well in the past: nothing is in doubt for that alone."""
    for folder, _, names in os.walk(root):
        for name in names:
            os.utime(Path(folder, name), (OLD_SECONDS, OLD_SECONDS))


@pytest.fixture
def live(
    repository: Path, build: Build, make_live: Callable[..., Live], monkeypatch: pytest.MonkeyPatch
) -> Live:
    """Of a repository that was indexed and walked."""
    monkeypatch.setattr("tsuzuki.collectors.codeindex.tree.doubt.TICK_NS", 0)
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "one")
    age(repository)
    build()
    made = make_live(repository)
    made.ask_with_walk()
    return made


def test_a_question_after_a_walk_walks_no_more(live: Live) -> None:
    assert live.ask_without_walk().paths == []
    write(live.root, "main.py", "edited")
    assert live.ask_without_walk().paths == ["main.py"]
    write(live.root, "new/deep/file.py", "new")
    assert {*live.ask_without_walk().paths} == {"main.py", "new/deep/file.py"}
    write(live.root, "new/deep/file.py", "again")
    (live.root / "main.py").unlink()
    assert {*live.ask_without_walk().paths} == {"new/deep/file.py"}


def test_a_build_makes_what_changed_clean_again(live: Live, build: Build) -> None:
    write(live.root, "main.py", "edited")
    assert live.ask_without_walk().paths == ["main.py"]
    build()
    assert live.ask_without_walk().paths == []
    assert live.tree._dirty == {}


@pytest.mark.parametrize("how", ["followed", "walked"])
def test_a_question_with_an_older_state_of_the_index_still_sees_what_another_found_clean(
    live: Live, build: Build, how: str
) -> None:
    write(live.root, "main.py", "edited")
    if how == "walked":
        live.tree._lose()
    find_changes = live.tree.catch_up()
    assert find_changes is not None
    with live.reading() as files:
        build()
        assert live.ask().paths == []
        assert live.ask_without_walk().paths == []
        assert find_changes(files).paths == ["main.py"]
    live.ask()


def test_folders_that_move_and_go_are_followed(live: Live) -> None:
    (live.root / "shop").rename(live.root / "store")
    found = live.ask_without_walk()
    assert {*found.scanned} == {"main.py", "store/cart.py", "store/sums.py"}
    write(live.root, "store/sums.py", "in_the_moved_folder")
    write(live.root, "store/late/file.py", "late")
    live.ask_without_walk()
    (live.root / "store").rename(live.root / "shop")
    live.ask_without_walk()
    shutil.rmtree(live.root / "shop")
    assert {*live.ask_without_walk().scanned} == {"main.py"}


def test_lost_events_are_followed_by_a_walk(live: Live) -> None:
    queued = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    places = [live.root / "main.py", live.root / "shop" / "cart.py"]
    for number in range(queued + 10):
        os.utime(places[number % 2], (OLD_SECONDS, OLD_SECONDS))
    write(live.root, "lost/unseen.py", "unseen")
    assert "lost/unseen.py" in live.ask_with_walk().paths
    write(live.root, "lost/unseen.py", "seen")
    live.ask_without_walk()


@pytest.mark.parametrize(
    "rule", ["ignore file", "exclude", "forced", "nested", "forced in nested", "above"]
)
def test_rules_that_change_which_files_are_listed_lead_to_a_walk(
    tree: Path, builds: Builds, make_live: Callable[..., Live], rule: str
) -> None:
    git(tree, "init", "--quiet")
    (tree / ".gitignore").write_text("*.log.py\n")
    (tree / "shop" / ".gitignore").write_text("made.py\n")
    write(tree, "shop/made.py", "made")
    write(tree, "noise.log.py", "noise")
    write(tree, "other/kept.py", "kept")
    if "nested" in rule:
        git(tree / "other", "init", "--quiet")
        (tree / "other" / ".gitignore").write_text("made.py\n")
        write(tree, "other/made.py", "made")
    age(tree)
    root = tree / "shop" if rule == "above" else tree
    builds.jobs.wait(builds.start(root).id, 60)
    live = make_live(root)
    live.ask()
    if rule == "ignore file":
        (tree / ".gitignore").write_text("")
    elif rule == "exclude":
        (tree / ".git" / "info").mkdir(exist_ok=True)
        (tree / ".git" / "info" / "exclude").write_text("main.py\n")
    elif rule == "forced":
        git(tree, "add", "--force", "noise.log.py")
    elif rule == "nested":
        (tree / "other" / ".gitignore").unlink()
    elif rule == "forced in nested":
        git(tree / "other", "add", "--force", "made.py")
    else:
        (tree / ".gitignore").write_text("sums.py\n")
    before = {*live.tree._known.scanned} if live.tree._known else None
    assert {*live.ask().scanned} != before


def test_a_file_with_a_second_name_elsewhere_is_always_looked_at(
    tree: Path,
    tmp_path: Path,
    build: Build,
    make_live: Callable[..., Live],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("tsuzuki.collectors.codeindex.tree.doubt.TICK_NS", 0)
    os.link(tree / "main.py", tmp_path / "elsewhere.py")
    build()
    live = make_live(tree)
    live.ask()
    live.ask_without_walk()
    (tmp_path / "elsewhere.py").write_text("def through_the_other_name():\n    pass\n")
    assert live.ask_without_walk().paths == ["main.py"]


def test_nothing_is_relied_upon_on_a_network_file_system(
    tree: Path, build: Build, make_live: Callable[..., Live], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(notifier_module, "is_local", lambda _folder: False)
    build()
    assert make_live(tree).tree.catch_up() is None


def test_nothing_is_relied_upon_in_a_folder_that_cannot_be_watched(
    tree: Path, build: Build, make_live: Callable[..., Live], monkeypatch: pytest.MonkeyPatch
) -> None:
    class Refusing(notifier_module.Inotify):
        def add(self, folder: str) -> int:
            if folder.endswith("/shop"):
                raise PermissionError(13, "Permission denied")
            return super().add(folder)

    monkeypatch.setattr(notifier_module, "Inotify", Refusing)
    build()
    assert make_live(tree).tree.catch_up() is None


def test_nothing_is_relied_upon_after_the_root_was_replaced_or_the_watch_ended(
    live: Live, tmp_path: Path
) -> None:
    live.root.rename(tmp_path / "moved")
    assert live.tree.catch_up() is None
    write(tmp_path, "other/fresh.py", "fresh")
    (tmp_path / "other").rename(live.root)
    assert live.tree.catch_up() is None
    live.notifier.close()
    assert live.tree.catch_up() is None


def test_another_index_of_the_tree_is_compared_as_a_whole(
    live: Live, builds: Builds, build: Build
) -> None:
    live.ask_without_walk()
    builds.remove(builds.find(str(live.root)))
    build()
    with live.reading() as files:
        assert files.connection is not None
    live.ask_with_walk()


def test_after_some_minutes_the_tree_is_walked_again(
    tree: Path, build: Build, make_live: Callable[..., Live]
) -> None:
    class Shifted(SystemClock):
        seconds = 0.0

        def monotonic(self) -> float:
            return super().monotonic() + self.seconds

    age(tree)
    build()
    clock = Shifted()
    live = make_live(tree, clock)
    live.ask_with_walk()
    live.ask_without_walk()
    clock.seconds = live_tree_module.WALK_SECONDS
    live.ask_with_walk()


def test_what_changes_while_a_build_runs_stays_under_suspicion_until_it_ended(
    live: Live, index_folder: Path
) -> None:
    with IndexFile.open(live.root, folder=index_folder) as index:
        claimed = claim_build(index, "build-1-abcdef", SystemClock())
        (live.root / "shop").rename(live.root / "away")
        (live.root / "away").rename(live.root / "shop")
        live.ask_without_walk()  # as before, for all that can be seen
        with index.transaction(lambda _: True) as connection:  # the build scanned in between
            stored_files.remove_files(connection, ["shop/cart.py", "shop/sums.py"])
            assert not hasattr(claimed, "status")
            connection.execute("UPDATE builds SET status = 'failed', error = 'ended'")
            assert build_rows.is_idle(connection)
    assert {*live.ask_without_walk().paths} == {"shop/cart.py", "shop/sums.py"}


def test_a_repository_without_files_is_walked_until_it_has_one(
    tree: Path, build: Build, make_live: Callable[..., Live]
) -> None:
    git(tree, "init", "--quiet")
    age(tree)
    build()
    live = make_live(tree)
    live.ask()
    (tree / "main.py").unlink()
    shutil.rmtree(tree / "shop")
    live.ask_with_walk()
    live.ask_with_walk()
    write(tree, "new.py", "new")
    assert "new.py" in live.ask_with_walk().listed


def test_too_many_changes_are_walked_and_counted(live: Live) -> None:
    for number in range(250):
        write(live.root, f"many/file{number}.py", f"function_{number}")
    assert live.ask_without_walk().pending == 250
    assert live.ask_with_walk().pending == 250


@pytest.mark.parametrize("seed", [16, *range(2)])
@pytest.mark.parametrize("kind", ["git", "walk"])
def test_after_any_changes_it_knows_what_a_walk_finds(
    tree: Path, tmp_path: Path, build: Build, make_live: Callable[..., Live], seed: int, kind: str
) -> None:
    if kind == "git":
        git(tree, "init", "--quiet")
    age(tree)
    build()
    live = make_live(tree)
    chance = random.Random(seed)
    for _ in range(40):
        for _ in range(chance.randrange(1, 4)):
            change_something(tree, tmp_path, chance)
        if chance.random() < 0.1:
            build()
        live.ask()
    assert live.walks < 40


def is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink() and ".git" not in path.parts


def change_something(root: Path, outside: Path, chance: random.Random) -> None:
    folders = [root, *(one for one in root.rglob("*") if is_folder(one))]
    files = [one for folder in folders for one in folder.glob("*.py")]
    folder, name = chance.choice(folders), f"n{chance.randrange(30)}"
    file = chance.choice(files) if files else None
    action = chance.randrange(12)
    if action <= 3 or file is None:
        (folder / f"{name}.py").unlink(missing_ok=True)
        (folder / f"{name}.py").write_text(f"def f{chance.random()}():\n    pass\n")
    elif action <= 5:
        file.unlink(missing_ok=True)
        file.write_text(f"def g{chance.randrange(10)}():\n    pass\n")
        os.utime(file, (OLD_SECONDS, OLD_SECONDS))
    elif action == 6:
        file.unlink(missing_ok=True)
    elif action == 7:
        file.rename(folder / f"{name}.py")
    elif action == 8:
        (folder / f"d{name}").mkdir(exist_ok=True)
    elif folder == root:
        (root / ".gitignore").write_text(chance.choice(["", "n1.py\n", "dn2/\n", "n*.py\n"]))
    elif action == 9:
        shutil.rmtree(folder)
    elif action == 10:
        number = chance.random()
        folder.rename(chance.choice([folder.with_name(f"moved{number}"), outside / f"out{number}"]))
    else:
        file.unlink(missing_ok=True)
        file.symlink_to(outside)


def test_each_edit_before_a_question_is_in_its_answer_while_the_watcher_works(
    repository: Path, builds: Builds, index_folder: Path
) -> None:
    age(repository)
    with Watched(repository, builds).resting() as watched:
        live = watched.watcher.live
        assert live is not None
        answers = CodeAnswers(repository, cwd=repository, folder=index_folder, live=live)
        for number in range(25):
            path = ["main.py", "shop/sums.py", f"new{number}/file.py"][number % 3]
            write(repository, path, f"edit_{number}")
            names = answers.search(f"edit_{number}").value.names
            assert names is not None
            assert [(one.symbol.path, one.symbol.name) for one in names.found] == [
                (path, f"edit_{number}")
            ]
    assert watched.watcher.live is None
