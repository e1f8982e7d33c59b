"""Trees whose author wants the one who indexes them to run a command, to hang, or to show a file of another place."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

from .conftest import git

MARK = "started-by-the-tree"
OUTSIDE = "outside_function"


def commands(mark: Path) -> str:
    """A shell command that leaves a mark."""
    return f"touch '{mark}'; false"


def lazy_fetch(root: Path, mark: Path) -> None:
    """Git has to read an object that only a remote has, and the remote is reached by a command."""
    _repository(root)
    (root / ".gitignore").write_text("*.log\n")
    git(root, "add", ".")
    blob = git_output(root, "rev-parse", ":.gitignore")
    git(root, "update-index", "--skip-worktree", ".gitignore")
    (root / ".gitignore").unlink()
    (root / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    (root / "new.py").write_text("def new():\n    pass\n")
    _configure(
        root,
        ("core.repositoryFormatVersion", "1"),
        ("extensions.partialClone", "evil"),
        ("remote.evil.promisor", "true"),
        ("remote.evil.url", str(root)),
        ("remote.evil.uploadpack", commands(mark)),
    )


def file_monitor(root: Path, mark: Path) -> None:
    """Git asks a command of the configuration which files have changed."""
    _tracked(root)
    _configure(root, ("core.fsmonitor", _script(root, mark)))


def hooks(root: Path, mark: Path) -> None:
    """Git runs the hooks of the repository."""
    _tracked(root)
    for name in ("post-index-change", "reference-transaction", "query-watchman"):
        hook = root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\n{commands(mark)}\n")
        hook.chmod(0o755)
    os.utime(root / "main.py", ns=(1, 1))


def filters(root: Path, mark: Path) -> None:
    """Git passes the content of files through commands of the configuration."""
    _tracked(root)
    (root / ".gitattributes").write_text("* filter=evil diff=evil textconv=evil\n")
    _configure(
        root,
        ("filter.evil.clean", commands(mark)),
        ("filter.evil.smudge", commands(mark)),
        ("filter.evil.process", commands(mark)),
        ("diff.evil.textconv", _script(root, mark)),
        ("diff.evil.command", _script(root, mark)),
        ("diff.external", _script(root, mark)),
    )
    (root / "main.py").write_text("def main():\n    needle()\n")


def pagers_and_helpers(root: Path, mark: Path) -> None:
    """Commands that git starts around its work."""
    _tracked(root)
    script = _script(root, mark)
    names = ("core.pager", "pager.grep", "core.sshCommand", "core.askPass", "core.editor")
    _configure(root, *((name, script) for name in names), ("alias.ls-files", f"!{script}"))
    _configure(root, ("core.alternateRefsCommand", script), ("grep.column", "true"))


def nested(root: Path, mark: Path) -> None:
    """An innocent repository with a hostile one inside."""
    _tracked(root)
    inner = root / "vendored"
    inner.mkdir()
    (inner / "main.py").write_text("def inner():\n    needle()\n")
    lazy_fetch(inner, mark)


COMMANDS: tuple[Callable[[Path, Path], None], ...] = (
    *(lazy_fetch, file_monitor, hooks, filters, pagers_and_helpers, nested),
)


def linked_folder(root: Path) -> None:
    """The index of git has files below a folder that a link to another place has replaced."""
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text(f"def {OUTSIDE}():\n    return 'needle'\n")
    (root / "sub").mkdir()
    (root / "sub" / "secret.py").write_text("x = 1\n")
    _tracked(root)
    (root / "sub" / "secret.py").unlink()
    (root / "sub").rmdir()
    (root / "sub").symlink_to(outside)


def linked_folder_in_a_nested_repository(root: Path) -> None:
    """The same in a repository inside the tree."""
    _tracked(root)
    inner = root / "vendored"
    inner.mkdir()
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text(f"def {OUTSIDE}():\n    return 'needle'\n")
    (inner / "sub").mkdir()
    (inner / "sub" / "secret.py").write_text("x = 1\n")
    _tracked(inner)
    (inner / "sub" / "secret.py").unlink()
    (inner / "sub").rmdir()
    (inner / "sub").symlink_to(outside)


def other_work_tree(root: Path) -> Path:
    """A repository whose configuration names a folder outside as its work tree; returns that folder."""
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text(f"def {OUTSIDE}():\n    return 'needle'\n")
    _tracked(root)
    _configure(root, ("core.worktree", str(outside)))
    return outside


def borrowed_objects(root: Path) -> None:
    """A repository that takes its objects, its branch and its list of files from another one. Git is told that the
    files are checked out, and to take their content from the objects."""
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "secret.py").write_text(f"def {OUTSIDE}():\n    return 'needle'\n")
    _tracked(outside)
    git(outside, "commit", "--quiet", "-m", OUTSIDE)
    _repository(root)
    alternates = root / ".git" / "objects" / "info" / "alternates"
    alternates.write_text(f"{outside}/.git/objects\n")
    head = (outside / ".git" / git_output(outside, "symbolic-ref", "HEAD")).read_text()
    (root / ".git" / "HEAD").write_text(head)
    git(root, "read-tree", "HEAD")
    git(root, "update-index", "--assume-unchanged", "secret.py")


def endless_rules(root: Path) -> None:
    """Git waits for the rules of a folder."""
    _tracked(root)
    (root / "inner").mkdir()
    os.mkfifo(root / "inner" / ".gitignore")


def endless_excludes(root: Path) -> None:
    """Git waits for a file of rules that its configuration names."""
    _tracked(root)
    os.mkfifo(root.parent / "rules")
    _configure(root, ("core.excludesFile", str(root.parent / "rules")))


def endless_configuration(root: Path) -> None:
    """Git waits for a file that its configuration includes."""
    _tracked(root)
    os.mkfifo(root.parent / "more")
    with (root / ".git" / "config").open("a") as file:
        file.write(f"[include]\n\tpath = {root.parent / 'more'}\n")


def endless_inclusion(root: Path) -> None:
    """A file that its configuration includes makes git wait for a third one."""
    _tracked(root)
    os.mkfifo(root.parent / "rules")
    (root.parent / "more").write_text(f"[core]\n\tattributesFile = {root.parent}/rules\n")
    with (root / ".git" / "config").open("a") as file:
        file.write('[includeIf "gitdir:/"]\n\tpath = "../../more" ; relative to this file\n')


def endless_attributes(root: Path) -> None:
    """Git waits for the attributes of a folder, and only when it searches."""
    _tracked(root)
    os.mkfifo(root / "shop" / ".gitattributes")


def endless_head_of_a_nested_repository(root: Path) -> None:
    """Git waits for the branch of a repository inside the tree."""
    _tracked(root)
    inner = root / "vendored"
    inner.mkdir()
    _repository(inner)
    (inner / ".git" / "HEAD").unlink()
    os.mkfifo(inner / ".git" / "HEAD")


def endless_branch(root: Path) -> None:
    """Git waits for the branch that is checked out when it lists worktrees."""
    _repository(root)
    git(root, "symbolic-ref", "HEAD", "refs/heads/main")
    os.mkfifo(root / ".git" / "refs" / "heads" / "main")


ENDLESS: tuple[Callable[[Path], None], ...] = (
    *(endless_rules, endless_excludes, endless_configuration, endless_inclusion),
    *(endless_attributes, endless_head_of_a_nested_repository, endless_branch),
)


IMPOSSIBLE_PATHS = {
    "with a NUL": b"x\0y",
    "too long": b"x" * 5_000,
    "a link in a circle": b"../circle",
}


def impossible_links(root: Path, named: bytes) -> None:
    """A worktree and a repository inside the tree whose files of git name a folder that cannot be one."""
    _tracked(root)
    (root / "circle").symlink_to("circle")
    for name, file in (("linked", ".git"), ("shared", ".git/commondir")):
        inner = root / name
        inner.mkdir()
        (inner / "main.py").write_text(f"def {name}():\n    pass\n")
        if file == ".git":
            (inner / ".git").write_bytes(b"gitdir: " + named + b"\n")
        else:
            _repository(inner)
            (inner / file).write_bytes(named + b"\n")


def slow_git(folder: Path, seconds: float) -> str:
    """A `PATH` whose git takes its time."""
    program = shutil.which("git")
    folder.mkdir()
    (folder / "git").write_text(f'#!/bin/sh\nsleep {seconds}\nexec {program} "$@"\n')
    (folder / "git").chmod(0o755)
    return f"{folder}:{os.environ['PATH']}"


def git_output(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout.strip()


def _repository(root: Path) -> None:
    git(root, "init", "--quiet")


def _tracked(root: Path) -> None:
    _repository(root)
    git(root, "add", ".")


def _configure(root: Path, *settings: tuple[str, str]) -> None:
    for name, value in settings:
        git(root, "config", name, value)


def _script(root: Path, mark: Path) -> str:
    script = root.parent / "script.sh"
    script.write_text(f"#!/bin/sh\n{commands(mark)}\n")
    script.chmod(0o755)
    return str(script)
