"""A virtual environment for each peer, made from its hash-pinned lock on first use.

Never the product's own: a peer may pin other versions of Tsuzuki's dependencies.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
LOCKS = ROOT / "requirements" / "bench"
FOLDERS = ROOT / "bench" / ".peers"
UV = ROOT / ".tools" / "bin" / "uv"
OURS = ("tsuzuki", "floor")


class NotInstalled(Exception):
    """A peer could not be installed; the table has the reason."""


def interpreter(peer: str) -> Path:
    if peer in OURS:
        return Path(sys.executable)
    lock = LOCKS / f"{peer}.txt"
    folder = FOLDERS / peer
    python = folder / "bin" / "python"
    stamp = folder / ".installed"
    wanted = hashlib.sha256(lock.read_bytes()).hexdigest()
    if not stamp.exists() or stamp.read_text(encoding="utf-8") != wanted:
        _uv("venv", "--clear", "--python", sys.executable, str(folder))
        _uv("pip", "install", "--python", str(python), "--require-hashes", "-r", str(lock))
        stamp.write_text(wanted, encoding="utf-8")
    return python


def _uv(*words: str) -> None:
    done = subprocess.run([UV, *words, "--quiet"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInstalled(done.stderr.strip().splitlines()[-1] if done.stderr else "uv failed")
