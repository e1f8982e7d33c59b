"""Git repositories with the edge cases of counting and paging commits."""

import random
import subprocess
from dataclasses import replace
from pathlib import Path

from tsuzuki.collectors.commits.sandbox.gitlab.repository_builder import (
    MovedFrom,
    RepositoryBuilder,
    Signature,
    Submodule,
)

LATIN = Signature(name="Jörg Müller".encode("latin-1"), email=b"joerg@example.org")
DECLARED_LATIN = replace(LATIN, encoding="ISO-8859-1")
JAPANESE = Signature.named("森 愛子", "aiko@example.jp")
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
    """Create `count` commits in sequence, including a few late merges of a side branch."""
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
    tree, parent = (_id(folder, name) for name in ("main^{tree}", "main"))
    raw = b"tree %s\nparent %s\nauthor A <a@x.org> %s\ncommitter C <c@x.org> %s\n\nOdd\n" % (
        tree,
        parent,
        authored.encode(),
        committed.encode(),
    )
    return _put(folder, raw)


AUTHOR_LINE = b"author A <a@x.org> 1300000000 +0000\n"
COMMITTER_LINE = b"committer C <c@x.org> 1300000000 +0000\n"
ODD_AUTHORS = (
    *(
        b"<a@x.org>",
        b" <a@x.org>",
        b"A <>",
        b"A < a@x.org >",
        b"A <a@x.org> x <b@x.org>",
        b"A B",
        b"",
    ),
    *(b"A <<a@x.org>>", b"A <a@x.org", b"A a@x.org>", b"A<a@x.org>", b"  A  B.,; <a@x.org>"),
    *(
        b"Tab\tA <a@x>",
        b"CR\r <a@x.org>\r",
        b"\x1b[31m\x07 <a@x>",
        b"\x0b\x0c\x1c\x1e <a@x>",
        b"A\0B <a@x>",
    ),
    *(b"\xff\xfe <x@\xff>", b"\xef\xbb\xbfA <a@x>", "\u2028\u0085\u00a0森 <a@x>".encode()),
)
ODD_DATES = (
    *(b"0 +0000", b"2147483648 +0000", b"4294967296 +0000", b"253402300799 +0000"),
    *(
        b"1300000000",
        b"1300000000 +9999",
        b"1300000000 -9999",
        b"1300000000 UTC",
        b"1300000000 +100",
    ),
    *(b"  1300000000   +0100", b"1300000000.5 +0000", b"01300000000 +0000", b"253402300000 +0100"),
)
ODD_HEADERS = (
    b"encoding ISO-8859-1\n",
    b"encoding nonsense\n",
    b"encoding UTF-16LE\n",
    b"gpgsig -----BEGIN PGP SIGNATURE-----\n \n iQ\n -----END PGP SIGNATURE-----\n",
    b"author Z <z@x> 1200000000 +0000\ncommitter Z <z@x> 1200000000 +0000\n",
)
ODD_MESSAGES = (b"", b"\n\n\n", b"a\0b\n", b"\0\0\n\n", b"a\r\nb\r\n", b"author Z <z@x> 1 +0000\n")


def odd_commits(folder: Path) -> None:
    """Put commits on `main` that no git would write and every git reads."""
    people = [(b"author %s 1300000000 +0000\n" % author, COMMITTER_LINE) for author in ODD_AUTHORS]
    dates = [(AUTHOR_LINE, b"committer C <c@x.org> %s\n" % date) for date in ODD_DATES]
    headers = [
        (b"author J\xf6rg <j@x.org> 1300000000 +0000\n", COMMITTER_LINE + line)
        for line in ODD_HEADERS
    ]
    usual = AUTHOR_LINE + COMMITTER_LINE
    raws = [b"".join((*lines, b"\nOdd\n")) for lines in (*people, *dates, *headers)]
    raws += [usual + b"\n" + message for message in ODD_MESSAGES]
    raws += [AUTHOR_LINE + b"\nx\n", COMMITTER_LINE + b"\nx\n", b"\nx\n"]
    for raw in raws:
        tree, parent = (_id(folder, name) for name in ("main^{tree}", "main"))
        _put(folder, b"tree %s\nparent %s\n%s" % (tree, parent, raw))


def _id(folder: Path, name: str) -> bytes:
    command = ["git", "-C", str(folder), "rev-parse", name]
    return subprocess.run(command, check=True, capture_output=True).stdout.strip()


def _put(folder: Path, raw: bytes) -> str:
    """Put a commit on `main` as it is written, and return its id."""
    git = ["git", "-C", str(folder)]
    store = [*git, "hash-object", "-t", "commit", "-w", "--stdin", "--literally"]
    sha = subprocess.run(store, input=raw, check=True, capture_output=True).stdout.decode().strip()
    subprocess.run([*git, "update-ref", "refs/heads/main", sha], check=True)
    return sha
