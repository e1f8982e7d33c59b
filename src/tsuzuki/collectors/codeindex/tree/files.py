"""Files of a tree that a stranger may have written: opened without following links or waiting for a FIFO."""

import os
import stat
from pathlib import Path

from tsuzuki.collectors.kit.regular_file import OPEN_FLAGS

_FOLDER_FLAGS = os.O_PATH | os.O_NOFOLLOW | os.O_DIRECTORY | os.O_CLOEXEC


def open_below(root: str | Path, path: str) -> int:
    """Open a file below the root for reading. Raises `OSError` if a part of its path is a link, or leads upwards."""
    *folders, name = path.split("/")
    if not name or any(part in ("", ".", "..") for part in (*folders, name)):
        raise FileNotFoundError(f"{path!r} is not the path of a file below a root")
    if not folders:
        return os.open(f"{root}/{name}", OPEN_FLAGS)
    here = os.open(f"{root}/{folders[0]}", _FOLDER_FLAGS)
    try:
        for folder in folders[1:]:
            below = os.open(folder, _FOLDER_FLAGS, dir_fd=here)
            os.close(here)
            here = below
        return os.open(name, OPEN_FLAGS, dir_fd=here)
    finally:
        os.close(here)


class RealFolders:
    """Which folders of a tree are reached without a link. Each is looked at once."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._real = {"": True}

    def have(self, path: str) -> bool:
        """Whether no folder on the way to a path is a link."""
        folder = path.rpartition("/")[0]
        real = self._real.get(folder)
        return self._look(folder) if real is None else real

    def _look(self, folder: str) -> bool:
        above, end = "", 0
        while end < len(folder):
            end = folder.find("/", end + 1)
            end = len(folder) if end < 0 else end
            here = folder[:end]
            if here not in self._real:
                self._real[here] = self._real[above] and self._is_folder(here)
            above = here
        return self._real[folder]

    def _is_folder(self, folder: str) -> bool:
        try:
            return stat.S_ISDIR(os.lstat(f"{self._root}/{folder}").st_mode)
        except OSError:
            return False
