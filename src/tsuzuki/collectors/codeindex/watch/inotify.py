"""inotify, the notifications of Linux about changes in folders, read without waiting.

The kernel queues an event before the system call that caused it returns. A reader that has emptied the queue knows of
every change made until then, or that events were lost.
"""

import ctypes
import os
import select
import struct
from typing import NamedTuple

MODIFY, ATTRIB, CLOSE_WRITE = 0x2, 0x4, 0x8
MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x40, 0x80, 0x100, 0x200
UNMOUNT, OVERFLOW, IGNORED = 0x2000, 0x4000, 0x8000
IS_FOLDER = 0x40000000
_ONLY_FOLDER, _DO_NOT_FOLLOW, _NOT_UNLINKED = 0x1000000, 0x2000000, 0x4000000
_MASK = (
    MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE
    | _ONLY_FOLDER | _DO_NOT_FOLLOW | _NOT_UNLINKED
)  # fmt: skip
_HEADER = struct.Struct("iIII")
_READ_BYTES = 64 * 1024
_STATFS_BYTES = 512

_LOCAL_FILE_SYSTEMS = frozenset(
    {
        0xEF53,  # ext2, ext3, ext4
        0x58465342,  # XFS
        0x9123683E,  # Btrfs
        0xF2F52010,  # F2FS
        0x2FC12FC1,  # ZFS
        0xCA451A4E,  # bcachefs
        0x01021994,  # tmpfs
        0x858458F6,  # ramfs
        0x794C7630,  # overlayfs
    }
)
"""File systems on which every change is made by this kernel. Elsewhere another machine, or a program behind FUSE, may
change a file without a notification."""

_libc = ctypes.CDLL(None, use_errno=True)


class InotifyEvent(NamedTuple):
    """`watch` is the folder's; `name` is an entry of it, or empty for the folder itself."""

    watch: int
    mask: int
    name: str


class Inotify:
    """A set of watched folders. Raises `OSError`, as when a limit of the system is reached."""

    def __init__(self) -> None:
        self._descriptor = _checked(_libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC))

    def fileno(self) -> int:
        return self._descriptor

    def add(self, folder: str) -> int:
        """Watch a folder, but not those in it. One that is watched already keeps its number."""
        return _checked(_libc.inotify_add_watch(self._descriptor, os.fsencode(folder), _MASK))

    def remove(self, watch: int) -> None:
        """Stop watching. It is no error if the folder is gone."""
        _libc.inotify_rm_watch(self._descriptor, watch)

    def read(self) -> list[InotifyEvent]:
        """Every event until now, in order."""
        found: list[InotifyEvent] = []
        while True:
            try:
                data = os.read(self._descriptor, _READ_BYTES)
            except BlockingIOError:
                return found
            found += _events(data)

    def close(self) -> None:
        os.close(self._descriptor)


class MountChanges:
    """Whether something was mounted or unmounted below a folder: what lies below a new mount was never watched."""

    def __init__(self, root: str) -> None:
        self._below = b"%s/" % _as_in_mountinfo(root)
        self._file = open("/proc/self/mountinfo", "rb")  # noqa: SIM115, PTH123 -- held until `close`
        self._poll = select.poll()
        self._poll.register(self._file, select.POLLERR | select.POLLPRI)
        self._poll.poll(0)
        self._mounts = self._read()

    def seen(self) -> bool:
        """Whether there was one since the last call."""
        if not self._poll.poll(0):
            return False
        before, self._mounts = self._mounts, self._read()
        return self._mounts != before

    def close(self) -> None:
        self._file.close()

    def _read(self) -> set[tuple[bytes, bytes]]:
        """Id and mount point of each mount below the folder."""
        self._file.seek(0)
        fields = (line.split(b" ", 5) for line in self._file)
        return {(one[0], one[4]) for one in fields if one[4].startswith(self._below)}


def _as_in_mountinfo(path: str) -> bytes:
    """The kernel writes some characters as octal numbers."""
    return b"".join(
        b"\\%03o" % one if one in b" \t\n\\" else bytes([one]) for one in os.fsencode(path)
    )


def is_local(folder: str) -> bool:
    """Whether every change of a folder is made by this kernel, which tells of it."""
    buffer = ctypes.create_string_buffer(_STATFS_BYTES)
    if _libc.statfs(os.fsencode(folder), buffer) != 0:
        return False
    return ctypes.c_ulong.from_buffer(buffer).value & 0xFFFFFFFF in _LOCAL_FILE_SYSTEMS


def _events(data: bytes) -> list[InotifyEvent]:
    found, at = [], 0
    while at < len(data):
        watch, mask, _cookie, length = _HEADER.unpack_from(data, at)
        at += _HEADER.size
        name = data[at : at + length].rstrip(b"\0")
        found.append(InotifyEvent(watch, mask, os.fsdecode(name)))
        at += length
    return found


def _checked(result: int) -> int:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    return result
