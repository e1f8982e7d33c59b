"""The trees that are indexed: Django's source distribution, or any folder; a generated one for memory.

Each is a git repository in the benchmark's cache, with files whose mtime is well in the past.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

CACHE = Path(__file__).parents[2] / ".cache" / "codeindex"
DJANGO = "Django==5.2.8"
OLD_SECONDS = 1_700_000_000
FILES_PER_FOLDER = 500


def django() -> Path:
    """Downloaded from the package registry that pip is configured for."""
    place = CACHE / "django"
    if not place.is_dir():
        with tempfile.TemporaryDirectory() as folder:
            pip = ("pip", "download", "--quiet", "--no-deps", "--no-binary", "Django", DJANGO)
            environment = Path(folder) / "pip"
            subprocess.run([sys.executable, "-m", "venv", environment], check=True)
            subprocess.run([environment / "bin" / pip[0], *pip[1:], "-d", folder], check=True)
            (archive,) = Path(folder).glob("*.tar.gz")
            # Not `TarFile.extractall`, whose `filter` Python has only since 3.11.4.
            subprocess.run(["tar", "-xzf", archive, "-C", folder], check=True)
            (unpacked,) = (path for path in Path(folder).glob("[Dd]jango-*") if path.is_dir())
            _keep(unpacked, place)
    return place


def copy_of(tree: Path) -> Path:
    """Copy the files git would list into a new repository, leaving the tree untouched."""
    place = CACHE / f"copy-{tree.resolve().name}"
    shutil.rmtree(place, ignore_errors=True)
    with tempfile.TemporaryDirectory() as folder:
        copied = Path(folder) / "tree"
        shutil.copytree(tree, copied, symlinks=True, ignore=shutil.ignore_patterns(".git", ".venv"))
        _keep(copied, place)
    return place


def generated(files: int) -> Path:
    """Small Python modules that call each other, each with other content."""
    place = CACHE / f"generated-{files}"
    if not place.is_dir():
        with tempfile.TemporaryDirectory(dir=_cache()) as folder:
            made = Path(folder) / "tree"
            for number in range(files):
                below = made / f"package{number // FILES_PER_FOLDER}"
                if number % FILES_PER_FOLDER == 0:
                    below.mkdir(parents=True)
                (below / f"module{number}.py").write_text(_module(number), encoding="utf-8")
            _keep(made, place)
    return place


def _module(number: int) -> str:
    before = max(number - 1, 0)
    return (
        f"from module{before} import Handler{before}, compute{before}\n\n\n"
        f'class Handler{number}(Handler{before}):\n    """Handles number {number}."""\n\n'
        f"    def handle(self, request):\n        return compute{before}(request, {number})\n\n\n"
        f"def compute{number}(value, step):\n    total = value + step\n    return str(total)\n"
    )


def git(folder: Path, *words: str) -> str:
    settings = ("-c", "user.name=bench", "-c", "user.email=bench@example.org")
    done = subprocess.run(
        ["git", "-C", str(folder), *settings, "-c", "gc.auto=0", *words],
        check=True,
        capture_output=True,
        text=True,
    )
    return done.stdout


def _keep(made: Path, place: Path) -> None:
    """Make the repository, and only then give it its name."""
    for below, _, names in os.walk(made):
        for name in names:
            if not (path := Path(below) / name).is_symlink():
                os.utime(path, (OLD_SECONDS, OLD_SECONDS))
    git(made, "init", "--quiet")
    git(made, "add", "--all")
    git(made, "commit", "--quiet", "--message", "The tree")
    _cache()
    shutil.move(made, place)


def _cache() -> Path:
    CACHE.mkdir(parents=True, exist_ok=True)
    return CACHE
