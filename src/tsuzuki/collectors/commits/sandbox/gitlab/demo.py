"""Repositories for a person who has none at hand: always the same ones, made in a second.

Two with a history of several people, merges and branches of every kind of name, and an empty one.
"""

import random
from dataclasses import dataclass, field
from pathlib import Path

from .repository_builder import Content, MovedFrom, RepositoryBuilder, Signature

PEOPLE = (
    Signature.named("Aiko Mori", "aiko@example.org"),
    Signature.named("Ben Okafor", "ben@example.org"),
    Signature.named("Clara Lindqvist", "clara@example.org"),
    Signature.named("田中 大輔", "daisuke@example.jp"),
)
FIRST_OF_2024 = 1_704_067_200
HOUR = 3600
HOURS_PER_STEP = 25
"""More than a step of a history takes on average, with its side branches."""


def make_demo(folder: Path, *, end: int | None = None) -> None:
    """Fill `folder` with the demo repositories. Their histories start in 2024, or end not long before `end`."""
    for name, seed, commits in (("atlas", 11, 600), ("harbour", 12, 150)):
        builder = RepositoryBuilder(folder / "demo" / f"{name}.git")
        chance = random.Random(seed)  # noqa: S311 -- the same history each time, not a secret
        start = FIRST_OF_2024 if end is None else end - commits * HOURS_PER_STEP * HOUR
        _History(builder, chance, now=start).write(commits=commits)
    RepositoryBuilder(folder / "demo" / "lantern.git")


@dataclass
class _History:
    """Work on the main branch, with a side branch now and then that is merged a while later."""

    make: RepositoryBuilder
    chance: random.Random
    now: int = FIRST_OF_2024
    open_branches: list[int] = field(default_factory=list)

    def write(self, *, commits: int) -> None:
        head = self._commit("main", "Begin", {"README.md": b"# A demo\n", "old.txt": _lines(12)})
        for number in range(1, commits):
            head = self._step(number, head)
            if number == commits // 2:
                self.make.point("release/1.0", head)
        self._commit("main", "Move a file", {"docs/new.txt": MovedFrom("old.txt")})
        self._commit("fix/#42", "Try a fix", {"fix.txt": _lines(5)}, parents=[head])
        self.make.write()

    def _step(self, number: int, head: int) -> int:
        if number % 9 == 4:
            self.open_branches.append(
                self._commit("topic", "Begin a topic", self._change(), parents=[head])
            )
        if self.open_branches and number % 14 == 0:
            merged = self.open_branches.pop(0)
            return self._commit("main", "Merge a topic", self._change(), parents=[head, merged])
        return self._commit("main", f"Change number {number}", self._change(), parents=[head])

    def _commit(
        self,
        branch: str,
        message: str,
        files: dict[str, Content],
        parents: list[int | str] | None = None,
    ) -> int:
        self.now += self.chance.randrange(HOUR, 40 * HOUR)
        author = self.chance.choice(PEOPLE)
        return self.make.commit(
            branch, files, parents=parents, author=author, at=self.now, message=message
        )

    def _change(self) -> dict[str, Content]:
        return {f"src/part{self.chance.randrange(20)}.txt": _lines(self.chance.randrange(1, 60))}


def _lines(count: int) -> bytes:
    return b"".join(b"line %d of %d\n" % (number, count) for number in range(count))
