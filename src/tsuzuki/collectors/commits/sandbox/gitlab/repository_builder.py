"""Makes repositories quickly: commits are collected and handed to `git fast-import` in one go.

The same calls make the same ids, on every machine and at any time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import assert_never

from .repository import Repository


@dataclass(frozen=True)
class MovedFrom:
    """A file that had another path before."""

    path: str


@dataclass(frozen=True)
class Submodule:
    """A commit of another repository."""

    sha: str


Content = bytes | MovedFrom | Submodule | None
"""What a path holds from now on; None takes it away."""


@dataclass(frozen=True, kw_only=True)
class Signature:
    name: bytes
    email: bytes
    encoding: str | None = None
    """Said in the commit; None for UTF-8, and for those who do not say what they write."""

    @classmethod
    def named(cls, name: str, email: str) -> "Signature":
        return cls(name=name.encode(), email=email.encode())


AUTHOR = Signature.named("Aiko Mori", "aiko@example.org")


@dataclass
class RepositoryBuilder:
    """A bare repository in `folder`. A commit is known by the number `commit` returns."""

    folder: Path
    default_branch: str = "main"
    _lines: list[bytes] = field(default_factory=list)
    _made: int = 0

    def __post_init__(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self.repository = Repository(self.folder)
        options = ("--quiet", "--bare", "--initial-branch", self.default_branch)
        self.repository.git("init", *options)

    def commit(
        self,
        branch: str,
        files: Mapping[str, Content] | None = None,
        *,
        parents: Sequence[int | str] | None = None,
        author: Signature = AUTHOR,
        at: int = 1_700_000_000,
        offset: str = "+0000",
        message: str = "Change",
    ) -> int:
        """Put a commit on `branch`: on its head, or on `parents` (numbers or ids; an empty list
        makes a root)."""
        self._made += 1
        lines = [b"commit refs/heads/%s" % branch.encode(), b"mark :%d" % self._made]
        when = f"{at} {offset}".encode()
        lines += [b"%s %s <%s> %s" % (role, author.name, author.email, when) for role in ROLES]
        if author.encoding:
            lines.append(b"encoding %s" % author.encoding.encode())
        lines += [_data(message.encode()), *self._ancestry(branch, parents)]
        for path, content in (files or {}).items():
            lines += _change(path, content)
        self._lines += [*lines, b""]
        return self._made

    def _ancestry(self, branch: str, parents: Sequence[int | str] | None) -> list[bytes]:
        if parents is None:
            return []
        if not parents:
            self._lines.append(b"reset refs/heads/%s\n" % branch.encode())
            return []
        first, *others = (_commit(parent) for parent in parents)
        return [b"from %s" % first, *(b"merge %s" % other for other in others)]

    def point(self, branch: str, at: int | str) -> None:
        """Move a branch by force, or make one."""
        self._lines += [b"reset refs/heads/%s" % branch.encode(), b"from %s" % _commit(at), b""]

    def delete(self, branch: str) -> None:
        self.write()
        self.repository.git("update-ref", "-d", f"refs/heads/{branch}")

    def write(self) -> None:
        """Hand over what was collected; numbers given so far are spent."""
        if self._lines:
            given = b"\n".join([*self._continued(), *self._lines, b"done", b""])
            self._lines = []
            self.repository.git("fast-import", "--quiet", "--force", "--done", given=given)

    def _continued(self) -> list[bytes]:
        """Let a commit without parents stand on its branch's head, which fast-import forgets."""
        return [
            b"reset refs/heads/%s\nfrom %s\n" % (branch.name.encode(), branch.sha.encode())
            for branch in self.repository.branches()
        ]


ROLES = (b"author", b"committer")


def _data(content: bytes) -> bytes:
    return b"data %d\n%s" % (len(content), content)


def _change(path: str, content: Content) -> list[bytes]:
    match content:
        case None:
            return [b"D %s" % _path(path)]
        case MovedFrom(path=former):
            return [b"R %s %s" % (_path(former), _path(path))]
        case Submodule(sha=sha):
            return [b"M 160000 %s %s" % (sha.encode(), _path(path))]
        case bytes():
            return [b"M 100644 inline %s" % _path(path), _data(content)]
        case _:
            assert_never(content)


def _path(path: str) -> bytes:
    quoted = path.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return b'"%s"' % quoted.encode()


def _commit(reference: int | str) -> bytes:
    return b":%d" % reference if isinstance(reference, int) else reference.encode()
