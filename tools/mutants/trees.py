"""Separate checkouts of the last commit with their own packages, so that mutations affect nothing else."""

import subprocess
from pathlib import Path

from tools.import_graph import ROOT

FOLDER = ROOT / ".cache" / "mutants"


def made(number: int) -> Path:
    """A clean tree at HEAD, made once and used again."""
    tree = FOLDER / f"tree-{number}"
    if not tree.exists():
        tree.parent.mkdir(parents=True, exist_ok=True)
        run(ROOT, "git", "clone", "--quiet", "--shared", str(ROOT), str(tree))
    head = run(ROOT, "git", "rev-parse", "HEAD").strip()
    run(tree, "git", "fetch", "--quiet", "origin", "HEAD")
    run(tree, "git", "checkout", "--quiet", "--force", "--detach", head)
    run(tree, "git", "clean", "--quiet", "-fd", "src")
    run(tree, "make", "--silent", "setup")
    return tree


def run(folder: Path, *words: str) -> str:
    done = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True)  # noqa: S603 -- git and make
    return done.stdout
