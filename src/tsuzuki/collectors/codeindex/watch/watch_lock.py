"""Which process watches a tree: the one that holds a lock on a file beside the index. The lock ends with its process,
however that ends."""

import fcntl
import os
from contextlib import suppress
from pathlib import Path
from typing import Self


def lock_path(index_file: Path) -> Path:
    """The file that is locked."""
    return Path(f"{index_file}.watch")


class WatchLock:
    """A lock that is held. `release` removes its file."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def take(cls, index_file: Path) -> Self | None:
        """None if another watcher has it, in this process or in another."""
        path = lock_path(index_file)
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_file(path, descriptor):
                    os.ftruncate(descriptor, 0)
                    os.pwrite(descriptor, b"%d\n" % os.getpid(), 0)
                    return cls(path, descriptor)
            except BlockingIOError:
                os.close(descriptor)
                return None
            except BaseException:
                os.close(descriptor)  # a lock without its holder would keep every other one out
                raise
            os.close(descriptor)  # its holder removed it between our two calls

    def release(self) -> None:
        with suppress(OSError):
            self._path.unlink()
        os.close(self._descriptor)


def watching_pid(index_file: Path) -> int | None:
    """The process that watches a tree; None if none does, 0 if it is not known which."""
    try:
        descriptor = os.open(lock_path(index_file), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        text = os.pread(descriptor, 32, 0).strip()
        return int(text) if text.isdigit() else 0
    finally:
        os.close(descriptor)
    return None


def _is_file(path: Path, descriptor: int) -> bool:
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except OSError:
        return False
