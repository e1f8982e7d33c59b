"""Git repositories with the edge cases of counting and paging commits."""

import random
import subprocess
from dataclasses import replace
from pathlib import Path

from tsuzuki.sandbox.gitlab.repository_builder import (
    MovedFrom,
    Person,
    RepositoryBuilder,
    Submodule,
)

LATIN = Person(name="Jörg Müller".encode("latin-1"), email=b"joerg@example.org")
DECLARED_LATIN = replace(LATIN, encoding="ISO-8859-1")
JAPANESE = Person.named("森 愛子", "aiko@example.jp")
AWKWARD_BRANCH = "feature/x#1&%2Fü"
ELSEWHERE = "1234567890123456789012345678901234567890"


def lines(count: int, word: str = "line") -> bytes:
    return b"".join(f"{word} {number}\n".encode() for number in range(count))


def wayward(folder: Path) -> RepositoryBuilder:
    """Octopus merge, renames, binaries, submodules, empty commits, Latin-1 names, several commits in
    one second, times of 1970 and 2100, an old branch merged late, two roots, strange paths."""
    make = RepositoryBuilder(folder)
    root = make.commit("main", {"a.txt": lines(30), "b.txt": lines(20)}, at=0, message="Begin")
    make.commit("main", {"a.txt": lines(35)}, author=LATIN, at=1_000_000_000)
    make.commit("main", {"c.txt": "é".encode("latin-1")}, author=DECLARED_LATIN, at=1_000_000_000)
    make.commit("main", author=JAPANESE, at=1_000_000_000, message="Nothing in it\n\nat all\x1e\n")
    make.commit("main", {"moved/b.txt": MovedFrom("b.txt")}, at=1_000_000_001, offset="+0900")
    moved = make.commit(
        "main",
        {"moved/d.txt": MovedFrom("moved/b.txt"), "moved/c.txt": lines(22)},
        at=1_000_000_002,
    )
    make.commit("main", {"image.bin": bytes(range(256)) * 4}, at=1_000_000_003)
    make.commit("main", {"image.bin": bytes(range(255, -1, -1)) * 5}, at=1_000_000_004)
    make.commit("main", {"module": Submodule(ELSEWHERE)}, at=1_000_000_005)
    make.commit("main", {'new\nline "quoted"\t.txt': lines(3)}, at=1_000_000_006)
    tip = make.commit(
        "main", {"module": Submodule(ELSEWHERE[::-1])}, at=4_102_444_800, offset="-1130"
    )
    arms = [
        make.commit(f"arm/{number}", {f"arm{number}.txt": lines(number)}, parents=[tip], at=base)
        for number, base in ((1, 1_100_000_000), (2, 1_100_000_000), (3, 1_200_000_000))
    ]
    octopus = make.commit(
        "main", {f"arm{n}.txt": lines(n) for n in (1, 2, 3)}, parents=[tip, *arms], at=1_300_000_000
    )
    make.commit("old", {"old.txt": lines(9)}, parents=[root], at=500_000_000)
    old = make.commit("old", {"old.txt": lines(12)}, at=500_000_001)
    other = make.commit("other", {"other.txt": lines(7)}, parents=[], at=1_250_000_000)
    late = make.commit(
        "main",
        {"old.txt": lines(12), "other.txt": lines(7)},
        parents=[octopus, old, other],
        at=1_300_000_001,
        message="Merge what was old",
    )
    make.commit("main", {"a.txt": None}, parents=[late], at=1_300_000_002)
    for number in range(6):
        make.commit("main", {"more.txt": lines(number + 1)}, at=1_300_000_002)
    make.commit(AWKWARD_BRANCH, {"x": b"1\n"}, parents=[moved], at=1_300_000_003)
    make.write()
    return make


def straight(folder: Path, count: int, *, branch: str = "main", seed: int = 1) -> RepositoryBuilder:
    """`count` commits one after the other, a few of them late merges of a side branch."""
    make = RepositoryBuilder(folder, default_branch=branch)
    chance = random.Random(seed)
    at = 1_600_000_000
    for number in range(count):
        at += chance.randrange(0, 7200)
        content = lines(chance.randrange(1, 20), f"{number}")
        make.commit(
            branch, {f"file{chance.randrange(12)}.txt": content}, at=at, message=f"Nr {number}"
        )
    make.write()
    return make


def with_raw_commit(folder: Path, *, committed: str, authored: str = "1300000000 +0000") -> str:
    """Put a commit on `main` whose dates are any text at all, and return its id."""
    git = ["git", "-C", str(folder)]
    tree, parent = (
        subprocess.run([*git, "rev-parse", name], check=True, capture_output=True).stdout.strip()
        for name in ("main^{tree}", "main")
    )
    raw = b"tree %s\nparent %s\nauthor A <a@x.org> %s\ncommitter C <c@x.org> %s\n\nOdd\n" % (
        tree,
        parent,
        authored.encode(),
        committed.encode(),
    )
    store = [*git, "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    sha = subprocess.run(store, input=raw, check=True, capture_output=True).stdout.decode().strip()
    subprocess.run([*git, "update-ref", "refs/heads/main", sha], check=True)
    return sha
