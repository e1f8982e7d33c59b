"""A path that a person wrote, as a path of the tree."""

import os
from pathlib import Path


def find_path(root: Path, text: str, *, cwd: Path) -> str | None:
    """Relative to the root with `/`, empty for the root itself; None if it lies outside or is not there.

    It is looked for from the current folder first if that is in the tree, then from the root. A link on the way is
    followed only to a place inside the tree.
    """
    for base in (cwd, root):
        # Unlike `Path.expanduser`, this leaves the name of an unknown user as it is.
        real = os.path.realpath(base / os.path.expanduser(text))  # noqa: PTH111 -- see above
        inside = os.path.relpath(real, root)
        if inside == os.pardir or inside.startswith(f"{os.pardir}{os.sep}"):
            continue
        if os.path.lexists(real):
            return "" if inside == os.curdir else Path(inside).as_posix()
    return None
