"""One file per process of this machine, which proves that a process has ended and left nothing behind.

A process locks its file (flock) and passes the descriptor on to its supervisors and their commands. The kernel frees
the lock when the last of them has ended, so a paused, frozen or slow process keeps it, and so does a command that still
has to be killed. The file also names the process in the process table: boot, namespaces, pid and start time. Only if
both agree is a process dead. Whatever is missing or unreadable, belongs to another boot, namespace or user, or is on
another machine, proves nothing; then silence decides, as it does without these files.
"""

import fcntl
import hashlib
import json
import os
import secrets
import select
from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from tsuzuki.store.wakeups.file_watch import CLOSED_AFTER_WRITING, FileWatch, watch

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 -- our folder in it is checked
"""All processes of a machine see it, services with a private /tmp too, and it is empty after a boot."""

DESCRIPTOR_MIN = 21
"""Commands may use smaller descriptors for files of their own, and 20 is the kill switch of their supervisor."""

ENDED_STATES = frozenset({b"Z", b"X", b"x"})
"""Of a row in the process table: only its parent has not noticed yet."""


class ProcessIdentity(NamedTuple):
    """A process in the process table of a machine. `started` tells two processes with the same pid apart."""

    machine: str
    pid: int
    started: int


class DatabaseAddress(Protocol):
    """Where a database is."""

    @property
    def host(self) -> str | None: ...

    @property
    def port(self) -> int | None: ...

    @property
    def database(self) -> str | None: ...

    def get_backend_name(self) -> str: ...


class ProcessFile(Protocol):
    """The file of another process."""

    name: str

    def is_out_of_process_table(self) -> bool:
        """Whether the process has surely ended."""

    def is_unlocked(self) -> bool:
        """Whether the process and all that it started have surely ended."""

    def remove(self) -> None: ...


class ProcessFiles(Protocol):
    def lock(self, name: str) -> None:
        """Create the file of our own process and hold its lock until we end."""

    def look(
        self, names: Collection[str] | None = None
    ) -> AbstractContextManager[Sequence[ProcessFile]]:
        """The files of others, or those of these names; none while another process looks."""

    def wait(self, seconds: float) -> Collection[str]:
        """Wait until files may have been unlocked, at most that long; their names."""

    def wake(self) -> None:
        """End every wait from now on: we are about to end."""

    def close(self) -> None:
        """We end in order: there is nothing to prove."""


def folder_for(database: DatabaseAddress, shared: Path = SHARED_MEMORY) -> Path:
    """Where the processes of our user that use a database by the same path or address keep their files."""
    name = database.database or ""
    if database.get_backend_name() == "sqlite":
        name = str(Path(name).resolve())
    where = json.dumps([database.get_backend_name(), database.host, database.port, name])
    key = hashlib.sha256(where.encode()).hexdigest()[:16]
    return shared / f"tsuzuki-{os.getuid()}" / key


class MachineProcessFiles:
    """The real ones. Used by one thread, `wake` and `descriptor` by any."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._own: Path | None = None
        self._watch: FileWatch | None = None
        self._woken: int | None = None
        self.descriptor: int | None = None
        """Of our own locked file, to pass on; None if there is none."""

    def lock(self, name: str) -> None:
        """Without it nobody can prove our death: no error."""
        self._woken = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
        with suppress(OSError, ValueError):
            identity = identity_of(os.getpid())
            self._create_folder()
            self.descriptor = self._locked(name, identity)
            self._own = self._folder / name
            self._watch = watch([self._folder], CLOSED_AFTER_WRITING)

    @contextmanager
    def look(
        self, names: Collection[str] | None = None
    ) -> Iterator[Sequence["MachineProcessFile"]]:
        try:
            descriptor = os.open(self._folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError:
            yield ()
            return
        try:
            may_look = _is_ours(descriptor) and _try_lock(descriptor)
            yield self._others(names) if may_look else ()
        finally:
            # A process that was forked meanwhile has the descriptor too, so closing it would not unlock.
            with suppress(OSError):
                fcntl.flock(descriptor, fcntl.LOCK_UN)
            os.close(descriptor)

    def wait(self, seconds: float) -> Collection[str]:
        """A process that ends in order removes its file before it closes it, which calls for nothing."""
        arriving = select.poll()
        if self._woken is not None:
            arriving.register(self._woken, select.POLLIN)
        if self._watch is not None:
            arriving.register(self._watch.descriptor, select.POLLIN)
        arriving.poll(seconds * 1000)
        closed = self._watch.names() if self._watch is not None else ()
        return frozenset(name for name in closed if (self._folder / name).exists())

    def wake(self) -> None:
        if self._woken is not None:
            os.eventfd_write(self._woken, 1)

    def close(self) -> None:
        if self._own is not None:
            with suppress(OSError):
                self._own.unlink()
            with suppress(OSError):
                self._folder.rmdir()
        if self._watch is not None:
            self._watch.close()
        for descriptor in (self.descriptor, self._woken):
            if descriptor is not None:
                os.close(descriptor)
        self._own = self._watch = self.descriptor = self._woken = None

    def _create_folder(self) -> None:
        for folder in (self._folder.parent, self._folder):
            with suppress(FileExistsError):
                folder.mkdir(0o700)
            _require_ours(folder.lstat())

    def _locked(self, name: str, identity: ProcessIdentity) -> int:
        """Locked before it has its name, so that nobody finds it unlocked while we live."""
        unnamed = self._folder / f".{secrets.token_hex(8)}"
        file = os.open(unnamed, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.write(file, json.dumps(identity).encode())
            descriptor = fcntl.fcntl(file, fcntl.F_DUPFD_CLOEXEC, DESCRIPTOR_MIN)
            unnamed.rename(self._folder / name)
        finally:
            os.close(file)
        return descriptor

    def _others(self, names: Collection[str] | None) -> Sequence["MachineProcessFile"]:
        own = self._own.name if self._own else None
        if names is None:
            names = [path.name for path in self._folder.iterdir()]
        return [
            MachineProcessFile(self._folder / name)
            for name in names
            if name != own and not name.startswith(".")
        ]


class MachineProcessFile:
    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._path = path

    def is_out_of_process_table(self) -> bool:
        try:
            machine, pid, started = json.loads(self._path.read_bytes())
            if machine != this_machine():
                return False
        except (OSError, ValueError):
            return False
        try:
            return identity_of(pid) != ProcessIdentity(machine, pid, started)
        except (FileNotFoundError, ProcessLookupError):
            return True
        except (OSError, ValueError):
            return False

    def is_unlocked(self) -> bool:
        try:
            descriptor = os.open(self._path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except OSError:
            return False
        try:
            return _try_lock(descriptor)
        finally:
            os.close(descriptor)

    def remove(self) -> None:
        with suppress(OSError):
            self._path.unlink()


def this_machine() -> str:
    """The boot, and the namespaces that give pids and start times their meaning. Raises `OSError` if it is unknown."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip()
    return " ".join(
        [boot, *(str(Path(f"/proc/self/ns/{kind}").readlink()) for kind in ("pid", "time"))]
    )


def identity_of(pid: int) -> ProcessIdentity:
    """Raises `FileNotFoundError` or `ProcessLookupError` if there is no such process, or it has ended."""
    # The program's name stands in parentheses and may contain anything, parentheses too.
    fields = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
    if fields[0] in ENDED_STATES:
        raise ProcessLookupError(pid)
    return ProcessIdentity(this_machine(), pid, int(fields[19]))


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_ours(descriptor: int) -> bool:
    try:
        _require_ours(os.fstat(descriptor))
    except PermissionError:
        return False
    return True


def _require_ours(folder: os.stat_result) -> None:
    """Nobody else may create, lock or remove files there."""
    if folder.st_uid != os.getuid() or folder.st_mode & 0o077:
        raise PermissionError("not a folder of ours alone")
