"""A real checkout with two branches that differ in every file."""

import subprocess
from pathlib import Path

BRANCHES = ("red", "blue")


def git(folder: Path, *arguments: str) -> None:
    subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@example.org", *arguments],
        cwd=folder,
        check=True,
        capture_output=True,
    )


def two_branches(root: Path, *, files: int) -> None:
    """`red` and `blue`: each file says its branch, with the function on another line."""
    root.mkdir()
    git(root, "init", "-q", "-b", "red")
    for branch in BRANCHES:
        if branch == "blue":
            git(root, "checkout", "-q", "-b", branch)
        for number in range(files):
            above = "# blue\n" * (45 if branch == "blue" else 0)
            text = f'{above}def place_{number}():\n    return "{branch} {number}"\n'
            (root / f"f{number}.py").write_text(text, encoding="utf-8")
        git(root, "add", "-A")
        git(root, "commit", "-q", "-m", branch)
