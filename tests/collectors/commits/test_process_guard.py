"""Git ends with the process that started it, however that ends."""

import os
import signal
import subprocess
import sys
from pathlib import Path

from support.daemons import eventually, is_alive

PARENT = """
import sys
from pathlib import Path
from tsuzuki.collectors.commits.git_program import Git
from tsuzuki.model.clock import SystemClock

Git(clock=SystemClock(), silence_seconds=600.0).ask(Path(sys.argv[1]), "fetch")
"""


def test_git_and_all_it_started_end_with_a_killed_parent(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    program = tmp_path / "git"
    program.write_text(
        f"#!/bin/sh\nsleep 600 &\necho $! $$ > {pids}.new\nmv {pids}.new {pids}\nwait\n"
    )
    program.chmod(0o755)
    environ = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(tmp_path)], env=environ)
    eventually(pids.is_file, what="git to have started")
    children = [int(pid) for pid in pids.read_text().split()]
    assert all(is_alive(pid) for pid in children)
    parent.send_signal(signal.SIGKILL)
    parent.wait()
    for pid in children:
        eventually(lambda pid=pid: not is_alive(pid), what="git to have ended")
