"""A bare view of a repository: its objects, and nothing else that could change what git says of them.

Neither the repository's configuration and attributes nor those of the user or the machine are seen, so a
commit has the same counts in a folder, in a mirror and on a server.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class ObjectStore:
    """Where a repository has its objects, and by which hash they are named."""

    folder: str
    object_format: str


@contextmanager
def bare_view(objects: ObjectStore) -> Iterator[tuple[Path, dict[str, str]]]:
    """The folder of the view, and what a git that looks through it has in its environment."""
    with tempfile.TemporaryDirectory(prefix="tsuzuki-view-") as name:
        view = Path(name)
        (view / "refs").mkdir()
        (view / "HEAD").write_text("ref: refs/heads/none\n")
        (view / "config").write_text(
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n"
            f"[extensions]\n\tobjectformat = {objects.object_format}\n"
        )
        yield (
            view,
            {
                "GIT_ATTR_NOSYSTEM": "1",
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_DIR": name,
                "GIT_OBJECT_DIRECTORY": objects.folder,
                "HOME": name,
                "XDG_CONFIG_HOME": name,
            },
        )
