"""The distribution in examples/statuses, installed as a package installer leaves it."""

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def install_example(folder: Path) -> Path:
    """A folder with the distribution and nothing else, to be put on the path."""
    source, site = folder / "source", folder / "site"
    shutil.copytree(ROOT / "examples" / "statuses", source)
    words = ["--quiet", "--no-deps", "--offline", "--no-build-isolation"]
    place = ["--python", sys.executable, "--target", site]
    command = [ROOT / ".tools" / "bin" / "uv", "pip", "install", *words, *place, source]
    subprocess.run(command, check=True, timeout=60)
    return site
