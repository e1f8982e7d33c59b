"""Questions that are asked while git switches between two branches."""

import threading
from pathlib import Path

from collectors.codeindex.service.checkout import BRANCHES, git
from tsuzuki.collectors.codeindex.answers.snapshots import ASK_AGAIN
from tsuzuki.collectors.codeindex.service.answers import CodeAnswers
from tsuzuki.model.errors import NotFound


def ask_during_switches(
    root: Path, answers: CodeAnswers, *, files: int, rounds: int, settled_min: int | None = None
) -> int:
    """Two questions a round: no answer mixes two branches, and all come from a tree at rest, or `settled_min` of
    them where git may take longer than a question waits. How many switches there were."""
    asked, answered = threading.Event(), threading.Event()
    switches = 0

    def switch() -> None:
        nonlocal switches
        while not asked.is_set():
            git(root, "checkout", "-q", BRANCHES[switches % 2])
            switches += 1
            answered.clear()
            answered.wait(60)

    switching = threading.Thread(target=switch)
    switching.start()
    try:
        settled = sum(_is_of_one_branch(answers, files, answered) for _ in range(rounds))
    finally:
        asked.set()
        answered.set()
        switching.join()
    assert settled >= (rounds if settled_min is None else settled_min)
    return switches


def _is_of_one_branch(answers: CodeAnswers, files: int, answered: threading.Event) -> bool:
    """Two questions; whether the tree was at rest for the first."""
    try:
        read = answers.read(["place_3", f"place_{files // 2}", f"place_{files - 1}"])
    except NotFound as problem:
        if ASK_AGAIN not in str(problem.hint):
            raise
        return False
    lines = answers.search("return", names=False, limit=files + 1)
    answered.set()
    if read.index.state != "changing":
        branches = {excerpt.lines[1][1].split('"')[1].split()[0] for excerpt in read.value}
        assert len(branches) == 1
        assert {excerpt.start for excerpt in read.value} == {46 if branches == {"blue"} else 1}
    if lines.index.state != "changing":
        assert len(lines.value.lines) == files
        assert len({line.text.split('"')[1].split()[0] for line in lines.value.lines}) == 1
    return read.index.state != "changing"
