"""A watcher brings the index to each change of the tree, in one build for a burst, and lives through what happens to
the tree, to the index and to the system."""

import errno
import os
import shutil
import threading
import time
from pathlib import Path

import pytest

from collectors.codeindex.conftest import git
from collectors.codeindex.watch.watched import Watched, write
from support.waiting import wait_until
from tsuzuki.collectors.codeindex.builds import builder as build_module
from tsuzuki.collectors.codeindex.builds.job import JOB_ID
from tsuzuki.collectors.codeindex.builds.jobs import TIMER_NAME
from tsuzuki.collectors.codeindex.index_file import FOLDER_VARIABLE, index_path
from tsuzuki.collectors.codeindex.service import watcher as watcher_module
from tsuzuki.collectors.codeindex.service.builds import Builds
from tsuzuki.collectors.codeindex.service.watcher import Watcher, WatchState
from tsuzuki.collectors.codeindex.tree import doubt
from tsuzuki.collectors.codeindex.tree.scan import Scan, scan_tree
from tsuzuki.collectors.codeindex.watch import notifier as notifier_module
from tsuzuki.collectors.codeindex.watch.inotify import Inotify
from tsuzuki.model.errors import Conflict


@pytest.fixture(params=["git", "walk"])
def kind(request: pytest.FixtureRequest, tree: Path) -> str:
    if request.param == "git":
        git(tree, "init", "--quiet")
    return str(request.param)


def threads() -> set[threading.Thread]:
    """Those at work, without the timer that forgets ended builds."""
    return {one for one in threading.enumerate() if one.name != TIMER_NAME}


@pytest.mark.usefixtures("kind")
def test_saved_moved_and_removed_files_are_followed(tree: Path, builds: Builds) -> None:
    with Watched(tree, builds).resting() as watched:
        assert ("main.py", "main") in watched.symbols()
        write(tree, "main.py", "changed")
        watched.built_until(lambda found: ("main.py", "changed") in found)
        write(tree, "new/deep/deeper/file.py", "deep")
        watched.built_until(lambda found: ("new/deep/deeper/file.py", "deep") in found)
        write(tree, "new/deep/deeper/file.py", "deep_again")
        watched.built_until(lambda found: ("new/deep/deeper/file.py", "deep_again") in found)
        (tree / "new").rename(tree / "old")
        watched.built_until(lambda found: ("old/deep/deeper/file.py", "deep_again") in found)
        assert "new/deep/deeper/file.py" not in watched.paths()
        write(tree, "old/deep/other.py", "other")
        watched.built_until(lambda found: ("old/deep/other.py", "other") in found)
        shutil.rmtree(tree / "old")
        watched.built_until(lambda found: all(not path.startswith("old/") for path, _ in found))
        jobs = [event.job for event in watched.events if event.job]
    assert all(JOB_ID.fullmatch(job.id) and job.id.startswith("watcher-") for job in jobs)


@pytest.mark.usefixtures("kind")
def test_each_edit_of_a_series_is_in_the_index_soon(tree: Path, builds: Builds) -> None:
    with Watched(tree, builds).resting() as watched:
        for number in range(4):
            write(tree, "main.py", f"edit_{number}")
            watched.built_until(lambda found, name=f"edit_{number}": ("main.py", name) in found)  # type: ignore[misc] -- bound now


def test_while_git_rewrites_the_tree_nothing_is_built_and_then_once(
    repository: Path, builds: Builds
) -> None:
    with Watched(repository, builds).resting() as watched:
        lock = repository / ".git" / "index.lock"
        lock.touch()
        until = time.monotonic() + 0.8  # several bursts
        while time.monotonic() < until:
            for number in range(100):
                write(repository, f"m{number % 7}/f{number}.py", f"function_{number}")
        assert not any(path.startswith("m0/") for path in watched.paths())
        lock.unlink()
        job = watched.built()
        assert job.result is not None
        assert (job.status, job.result.updated_files) == ("completed", 100)


def test_what_is_ignored_starts_no_build_and_rules_that_change_do(
    repository: Path, builds: Builds
) -> None:
    (repository / ".gitignore").write_text("*.log.py\n/made/\n")
    write(repository, "made/out.py", "made")
    with Watched(repository, builds).resting() as watched:
        write(repository, "noise.log.py", "noise")
        write(repository, "made/out.py", "made_again")
        write(repository, "seen.py", "seen")
        watched.built_until(lambda found: ("seen.py", "seen") in found)
        assert not {"noise.log.py", "made/out.py"} & watched.paths()
        jobs = {event.job.id for event in watched.events if event.job}
        assert len(jobs) == 2
        (repository / ".gitignore").write_text("*.log.py\n")
        watched.built_until(lambda found: ("made/out.py", "made_again") in found)
        write(repository, "made/out.py", "made_last")
        watched.built_until(lambda found: ("made/out.py", "made_last") in found)
        git(repository, "add", "--force", "noise.log.py")
        watched.built_until(lambda found: ("noise.log.py", "noise") in found)


def test_a_worktree_in_the_tree_is_left_out_and_a_repository_is_followed(
    repository: Path, builds: Builds
) -> None:
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "one")
    (repository / "other").mkdir()
    git(repository / "other", "init", "--quiet")
    with Watched(repository, builds).resting() as watched:
        git(repository, "worktree", "add", "--quiet", "inner", "-b", "side")
        write(repository, "inner/main.py", "in_the_worktree")
        write(repository, "other/deep/file.py", "in_the_repository")
        watched.built_until(lambda found: ("other/deep/file.py", "in_the_repository") in found)
        write(repository, "other/deep/file.py", "again")
        watched.built_until(lambda found: ("other/deep/file.py", "again") in found)
        assert not any(path.startswith("inner/") for path in watched.paths())


def test_a_folder_that_becomes_a_repository_is_followed_as_one(tree: Path, builds: Builds) -> None:
    write(tree, "node_modules/x.py", "installed")
    with Watched(tree, builds).resting() as watched:
        assert "node_modules/x.py" not in watched.paths()
        git(tree, "init", "--quiet")
        watched.built_until(lambda found: ("node_modules/x.py", "installed") in found)
        write(tree, "node_modules/x.py", "again")
        watched.built_until(lambda found: ("node_modules/x.py", "again") in found)


def test_links_are_not_followed_out_of_the_tree_or_in_a_loop(
    tree: Path, tmp_path: Path, builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Recorded(Inotify):
        def add(self, folder: str) -> int:
            asked.append(folder)
            return super().add(folder)

    monkeypatch.setattr(notifier_module, "Inotify", Recorded)
    write(tmp_path, "outside/secret.py", "secret")
    (tree / "loop").symlink_to(".")
    (tree / "out").symlink_to(tmp_path / "outside")
    with Watched(tree, builds).resting() as watched:
        (tree / "late").symlink_to(tmp_path / "outside")
        write(tmp_path, "outside/secret.py", "secret_again")
        write(tree, "main.py", "changed")
        watched.built_until(lambda found: ("main.py", "changed") in found)
        assert watched.paths() == {"main.py", "shop/cart.py", "shop/sums.py"}
    assert set(asked) == {str(tree), str(tree / "shop")}


def test_a_root_that_goes_is_waited_for_and_what_was_indexed_is_kept(
    tree: Path, tmp_path: Path, builds: Builds
) -> None:
    with Watched(tree, builds).resting() as watched:
        tree.rename(tmp_path / "moved")
        watched.state(WatchState.ROOT_GONE)
        assert ("main.py", "main") in watched.symbols()
        write(tmp_path, "other/fresh.py", "fresh")
        (tmp_path / "other").rename(tree)
        watched.built_until(lambda found: ("fresh.py", "fresh") in found)
        assert watched.paths() == {"fresh.py"}
        write(tree, "fresh.py", "changed")
        watched.built_until(lambda found: found == {("fresh.py", "changed")})


def test_a_root_that_is_replaced_is_followed(tree: Path, tmp_path: Path, builds: Builds) -> None:
    write(tmp_path, "other/fresh.py", "fresh")
    with Watched(tree, builds).resting() as watched:
        tree.rename(tmp_path / "moved")
        (tmp_path / "other").rename(tree)
        watched.built_until(lambda found: found == {("fresh.py", "fresh")})
        write(tree, "fresh.py", "changed")
        watched.built_until(lambda found: found == {("fresh.py", "changed")})


def test_a_root_that_goes_during_a_scan_fails_the_build_and_keeps_the_index(
    tree: Path, tmp_path: Path, builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    def scan_late(root: Path, **options: object) -> Scan:
        tree.rename(tmp_path / "moved")
        return scan_tree(root)

    with Watched(tree, builds).resting() as watched:
        monkeypatch.setattr(watcher_module, "scan_tree", scan_late)
        monkeypatch.setattr(watcher_module, "scan_part", lambda *_: None)
        write(tree, "main.py", "changed")
        watched.state(WatchState.RETRYING)
        assert len(watched.paths()) == 3


def test_at_the_limit_of_watches_it_polls_says_so_and_returns_when_it_can(
    tree: Path, builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 2

    class Limited(Inotify):
        def __init__(self) -> None:
            super().__init__()
            self._added: set[int] = set()

        def add(self, folder: str) -> int:
            if len(self._added) >= limit:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            self._added.add(super().add(folder))
            return super().add(folder)

    monkeypatch.setattr(notifier_module, "Inotify", Limited)
    monkeypatch.setattr(notifier_module, "POLL_SECONDS", 0.02)
    monkeypatch.setattr(watcher_module, "RENEW_SECONDS", 0.2)
    with Watched(tree, builds).resting() as watched:
        write(tree, "more/than/before.py", "more")
        told = watched.state(WatchState.POLLING)
        assert "limit of watched folders is reached. Raise fs.inotify" in str(told.note)
        watched.built_until(lambda found: ("more/than/before.py", "more") in found)
        write(tree, "main.py", "polled")
        watched.built_until(lambda found: ("main.py", "polled") in found)
        limit = 100
        watched.state(WatchState.WATCHING)
        write(tree, "main.py", "noticed")
        watched.built_until(lambda found: ("main.py", "noticed") in found)


def test_one_watcher_of_a_tree_works_and_the_next_takes_over(
    tree: Path, builds: Builds, index_folder: Path
) -> None:
    other = Builds(environ={FOLDER_VARIABLE: str(index_folder)}, workers=1)
    with Watched(tree, other) as second, Watched(tree, builds) as first:
        both = {first, second}
        wait_until(
            lambda: (
                {one.watcher.state for one in both} == {WatchState.WATCHING, WatchState.WAITING}
            ),
            "one of the two works",
        )
        working = next(one for one in both if one.watcher.state is WatchState.WATCHING)
        (waiting,) = both - {working}
        waiting.wait_for(lambda told: told.note == f"process {os.getpid()} watches it")
        assert working.watcher.close()
        write(tree, "main.py", "between")
        waiting.built_until(lambda found: ("main.py", "between") in found)
    assert not [*index_folder.glob("*.watch")]


def test_closing_leaves_no_thread_and_no_file(
    tree: Path, builds: Builds, index_folder: Path
) -> None:
    before = threads()
    with Watched(tree, builds).resting() as watched:
        pass
    assert watched.watcher.state is WatchState.CLOSED
    assert threads() == before
    assert [one.suffix for one in index_folder.iterdir()] == [".sqlite"]


def test_closing_cancels_the_build_that_runs(
    tree: Path, builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    is_scanning = threading.Event()

    def scan_for_ever(_root: Path, **options: object) -> Scan:
        is_scanning.set()
        on_tick = options["on_tick"]
        assert callable(on_tick)
        while True:
            on_tick()

    monkeypatch.setattr(build_module, "scan_tree", scan_for_ever)
    before = threads()
    with Watched(tree, builds):
        assert is_scanning.wait(120)
    assert threads() == before
    job = builds.status(tree).job
    assert job is not None
    assert (job.status, job.error) == ("failed", "cancelled")


def test_a_watcher_is_started_once(tree: Path, builds: Builds) -> None:
    watcher = Watcher(tree, builds=builds)
    assert watcher.close()
    with watcher, pytest.raises(ValueError, match="once"):
        watcher.start()


def test_the_index_of_a_watched_tree_is_not_removed(tree: Path, builds: Builds) -> None:
    with Watched(tree, builds).resting():
        with pytest.raises(Conflict) as refused:
            builds.remove(builds.find(str(tree)))
        assert refused.value.specific_code == "tree_watched"
        assert f"process {os.getpid()}" in str(refused.value)
    builds.remove(builds.find(str(tree)))
    assert builds.entries() == []


@pytest.mark.parametrize("how", ["removed", "corrupt"])
def test_an_index_that_is_lost_is_built_anew_as_a_whole(
    tree: Path, builds: Builds, index_folder: Path, how: str
) -> None:
    with Watched(tree, builds).resting() as watched:
        path = index_path(tree, index_folder)
        for end in ("", "-wal", "-shm"):
            Path(f"{path}{end}").unlink(missing_ok=True)
        if how == "corrupt":
            path.write_bytes(b"no database" * 1000)
        write(tree, "main.py", "changed")
        job = watched.built()
        assert job.result is not None
        assert job.result.updated_files == 3
        assert watched.paths() == {"main.py", "shop/cart.py", "shop/sums.py"}


def test_a_build_that_fails_is_tried_again_as_a_whole(
    tree: Path, builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watcher_module, "RETRY_SECONDS", 0.01)
    real = build_module.Builder._build

    def fail(*_arguments: object) -> None:
        monkeypatch.setattr(build_module.Builder, "_build", real)
        raise OSError(28, "No space left on device")

    with Watched(tree, builds).resting() as watched:
        monkeypatch.setattr(build_module.Builder, "_build", fail)
        write(tree, "main.py", "changed")
        failed = watched.state(WatchState.RETRYING)
        assert "No space left on device" in str(failed.note)
        watched.built_until(lambda found: ("main.py", "changed") in found)


def test_index_files_in_the_tree_do_not_keep_it_busy(tree: Path) -> None:
    builds = Builds(environ={FOLDER_VARIABLE: str(tree / "indexes")}, workers=1)
    with Watched(tree, builds).resting() as watched:
        for number in range(3):
            write(tree, "main.py", f"edit_{number}")
            watched.built_until(lambda found, name=f"edit_{number}": ("main.py", name) in found)  # type: ignore[misc] -- bound now
        until = time.monotonic() + 1
        wait_until(lambda: time.monotonic() > until, "it would have seen itself")
    watched.state(WatchState.CLOSED)
    jobs = {event.job.id for event in watched.events if event.job}
    assert len(jobs) <= 1 + 2 * 3


def test_another_build_of_the_tree_is_waited_for(
    tree: Path, builds: Builds, index_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    has_scanned, go_on = threading.Event(), threading.Event()

    def scan_and_wait(root: Path, **_options: object) -> Scan:
        found = scan_tree(root)
        has_scanned.set()
        go_on.wait(120)
        return found

    with Watched(tree, builds).resting() as watched:
        monkeypatch.setattr(build_module, "scan_tree", scan_and_wait)
        other = Builds(environ={FOLDER_VARIABLE: str(index_folder)}, workers=1)
        started = other.start(tree)
        assert has_scanned.wait(120)
        write(tree, "main.py", "changed")
        building = watched.state(WatchState.BUILDING)
        assert building.job is not None
        assert building.job.id == started.id
        go_on.set()
        watched.built_until(lambda found: ("main.py", "changed") in found)


def test_the_end_of_another_build_that_has_seen_the_change_is_reported(
    tree: Path, builds: Builds, index_folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def wait_and_scan(root: Path, **_options: object) -> Scan:
        go_on.wait(120)
        return scan_tree(root)

    monkeypatch.setattr(doubt, "TICK_NS", 0)
    with Watched(tree, builds).resting() as watched:
        monkeypatch.setattr(build_module, "scan_tree", wait_and_scan)
        other = Builds(environ={FOLDER_VARIABLE: str(index_folder)}, workers=1)
        started = other.start(tree)
        write(tree, "main.py", "changed")
        watched.state(WatchState.BUILDING)
        go_on.set()
        ended = watched.state(WatchState.WATCHING)
        assert ended.job is not None
        assert (ended.job.id, ended.job.status) == (started.id, "completed")
        assert ("main.py", "changed") in watched.symbols()


def test_closing_cancels_no_build_that_was_asked_for(
    tree: Path, builds: Builds, monkeypatch: pytest.MonkeyPatch
) -> None:
    go_on = threading.Event()

    def scan_when_told(root: Path, **_options: object) -> Scan:
        go_on.wait(120)
        return scan_tree(root)

    with Watched(tree, builds).resting() as watched:
        monkeypatch.setattr(build_module, "scan_tree", scan_when_told)
        started = builds.start(tree)
        write(tree, "main.py", "changed")
        watched.state(WatchState.BUILDING)
    go_on.set()
    job = builds.jobs.wait(started.id, 60)
    assert job is not None
    assert job.status == "completed"


def test_a_change_of_branch_may_change_the_rules(repository: Path, builds: Builds) -> None:
    (repository / ".gitignore").write_text("/made/\n")
    git(repository, "add", ".")
    git(repository, "commit", "--quiet", "-m", "made is ignored")
    git(repository, "checkout", "--quiet", "-b", "open")
    git(repository, "rm", "--quiet", ".gitignore")
    git(repository, "commit", "--quiet", "-m", "nothing is")
    git(repository, "checkout", "--quiet", "-")
    write(repository, "made/out.py", "made")
    with Watched(repository, builds).resting() as watched:
        assert "made/out.py" not in watched.paths()
        git(repository, "checkout", "--quiet", "open")
        watched.built_until(lambda found: ("made/out.py", "made") in found)
        write(repository, "made/out.py", "followed")
        watched.built_until(lambda found: ("made/out.py", "followed") in found)
