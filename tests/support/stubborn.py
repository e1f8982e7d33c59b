"""Functions that do not stop when they are asked to, each in its own way."""

import textwrap
from pathlib import Path

STUBBORN = {
    "endless loop": "while True: pass",
    "holds the GIL": "sum(itertools.repeat(1))",
    "ignores SIGTERM": "signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
    "swallows everything": """
        while True:
            try: run.wait(600); time.sleep(600)
            except BaseException: pass""",
    "waits for a program": "subprocess.run(['sleep', '600'])",
    "leaves daemons": """
        subprocess.Popen(['sh', '-c', 'setsid sleep 600 & setsid sh -c "sleep 600 & sleep 600" &'])
        time.sleep(600)""",
    "forks": """
        for _ in range(5):
            if os.fork() == 0:
                signal.signal(signal.SIGTERM, signal.SIG_IGN)
                os.setsid()
                time.sleep(600)
        time.sleep(600)""",
    "closes its descriptors": "os.closerange(0, 15); time.sleep(600)",
}
"""The bodies of functions, by what they do."""


def stubborn_module(name: str) -> str:
    """A module with the function of this name as `stubborn`, which first logs its own and its supervisor's pid, and
    with `neighbour`, which takes a while, and `waits`, which stops when it is asked to."""
    body = textwrap.indent(textwrap.dedent(STUBBORN[name]).strip(), "    ")
    return f"""
import itertools, os, signal, subprocess, time

def stubborn(run):
    run.log(str(os.getpid()))
    run.log(str(os.getppid()))
{body}

def neighbour(run):
    run.log("up")
    return run.wait(0.5)

def waits(run):
    run.log("up")
    while not run.wait(600):
        pass
"""


def descendants(supervisor: int) -> set[int]:
    """Descendants of a process at any depth."""
    parents = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit():
            try:
                fields = (folder / "stat").read_bytes().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] != b"Z":
                parents[int(folder.name)] = int(fields[1])
    found = {supervisor}
    while more := {pid for pid, parent in parents.items() if parent in found} - found:
        found |= more
    return found - {supervisor}
