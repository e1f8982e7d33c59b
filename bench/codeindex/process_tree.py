"""The peak memory of a process and of all that it starts, together. Linux only: it is read from /proc."""

import os
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

SAMPLE_SECONDS = 0.05
PAGE_KB = os.sysconf("SC_PAGE_SIZE") // 1024


def run_and_sum(command: Sequence[str]) -> tuple[str, int]:
    """Output of a command and its peak memory in MB: private memory of its processes, plus memory they share with
    other files once."""
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    peak_kb = 0
    ended = threading.Event()

    def sample() -> None:
        nonlocal peak_kb
        while not ended.wait(SAMPLE_SECONDS):
            peak_kb = max(peak_kb, sum(map(_resident_kb, _descendants(process.pid))))

    sampling = threading.Thread(target=sample)
    sampling.start()
    output, errors = process.communicate()
    ended.set()
    sampling.join()
    if process.returncode:
        raise SystemExit(f"{' '.join(command)}:\n{errors}")
    return output, round(peak_kb / 1024)


def _descendants(pid: int) -> list[int]:
    found = [pid]
    for parent in found:
        try:
            tasks = list(Path(f"/proc/{parent}/task").iterdir())
            for task in tasks:
                found += map(int, (task / "children").read_text().split())
        except OSError:
            continue
    return found


def _resident_kb(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * PAGE_KB
    except (OSError, IndexError):
        return 0
